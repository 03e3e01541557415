"""The table of quantities of the probabilities that a paper's models give to texts."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Literal

from core.families.family import SEEN
from core.families.table import ROWS
from core.pages.runs import HEADS, SEEDS_NOTE, by_arm, size_of, starts_of
from core.paper import Paper
from core.records.schema import QuantityChange, RunRecord
from eval.tables.seed_intervals import mean_interval
from eval.tables.table import Block, Cell, Column, Row, Section, Table

SPLITS = "by rows that are held out and (/training) trained on"
OF_TOKENS, OF_PAIRS = f"of solutions, per token, {SPLITS}", f"of pairs of answers, {SPLITS}"
PAIRS_NOTE = (
    "Margins and log-ratios are sums over the tokens of an answer, in nats; accuracies are shares "
    "of pairs; kl_to_start is a mean over tokens of the model's own answers."
)
REWARDS_NOTE = (
    "Margins are gaps of rewards, clear and close pairs those of the highest and the lowest grade, "
    "accuracies shares of pairs; rewards/bimodality is Ashman's D of chosen and rejected texts."
)
OF_SCORES = "of sampled solutions of held-out problems, with scores"
SCORES_NOTE = (
    "All are shares. The starting policy samples the solutions and gives each the score 1. Of "
    "ordered_pairs one solution is right, one is wrong, and their scores are in order; best_of_n "
    "takes the highest score of any n; a trace error is a right answer with a wrong step."
)
SCORE_NAMES = {name for family in ROWS for name in family.solution_quantities}
PAIR_NAMES, REWARD_NAMES = (
    {
        name
        for family in ROWS
        if family.gives_rewards == of_rewards
        for name in family.pair_quantities
    }
    for of_rewards in (False, True)
)


def quantities_tables(paper: Paper, runs: Sequence[RunRecord], scale: str) -> Iterator[Table]:
    """Yield one table if any run measured quantities of probabilities, else nothing."""
    measured = [run for run in runs if run.get("probabilities")]
    names = list(dict.fromkeys(name for run in measured for name in run.get("probabilities", {})))
    if not names:
        return
    arms = by_arm(paper, measured)
    kinds = {name.removesuffix(SEEN) for name in names}
    notes = [
        note
        for note, of in (
            (PAIRS_NOTE, PAIR_NAMES), (REWARDS_NOTE, REWARD_NAMES), (SCORES_NOTE, SCORE_NAMES)
        )
        if kinds & of
    ]  # fmt: skip
    subject = OF_SCORES if kinds & SCORE_NAMES else OF_PAIRS if notes else OF_TOKENS
    runs_by_start = {
        name: starts_of(name, measured)
        for name in dict.fromkeys(
            run["start_model"] for arm_runs in arms.values() for run in arm_runs
        )
    }
    before = [
        Row((name, size_of(starts)), cells(starts, names, "before"))
        for name, starts in runs_by_start.items()
    ]
    after = [
        Row((f"+ {arm}", size_of(arm_runs)), cells(arm_runs, names, "after"))
        for arm, arm_runs in arms.items()
    ]
    sections = (Section("Ours: before", tuple(before)), Section("Ours: after", tuple(after)))
    yield Table(
        name=f"{paper.slug}-probabilities",
        caption=f"{paper.slug}: quantities {subject} ({scale} scale)",
        scale=scale,
        heads=HEADS,
        columns=tuple(Column(name, places=3) for name in names),
        blocks=(Block("", sections),),
        notes=(SEEDS_NOTE, *notes),
    )


def cells(
    runs: Sequence[RunRecord], names: Sequence[str], side: Literal["before", "after"]
) -> tuple[Cell | None, ...]:
    """Return the mean over seeds of each quantity; None if a run lacks it."""
    return tuple(
        cell([run.get("probabilities", {})[name] for run in runs], side)
        if all(name in run.get("probabilities", {}) for run in runs)
        else None
        for name in names
    )


def cell(changes: Sequence[QuantityChange], side: Literal["before", "after"]) -> Cell:
    """Return the cell of the mean of one quantity over the seeds."""
    intervals = [
        change["before_interval" if side == "before" else "after_interval"] for change in changes
    ]
    lows, highs = zip(*intervals, strict=True)
    # An estimate of a divergence may lie below 0, and a loss above 100.
    mean, low, high = mean_interval(
        [change[side] for change in changes],
        lows,
        highs,
        shared=True,
        lower_bound=-inf,
        upper_bound=inf,
    )
    return Cell(mean, low=low, high=high, n=changes[0]["n"], seeds=len(changes))
