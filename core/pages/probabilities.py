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
OVERRATED_NOTE = (
    "overrated_of_n is no share but the score less the gold of the best scored of any n: both in "
    "standard deviations within a problem, from its mean; the gold is the share of right steps. "
    "overrated_by_chance_of_n is that of equal scores in an order which knows nothing of the gold. "
    "/ensemble scores by the mean of the standardised scores of several models, and /alone is the "
    "mean over these models."
)
OF_TEXTS = "of texts that the model draws, beside held-out texts"
TEXTS_NOTE = (
    "bigrams/distance is the total variation of pairs of neighbouring tokens; texts of one "
    "distribution are apart by chance."
)
OF_TEACHER = "of sampled answers to held-out problems, beside the teacher"
TEACHER_NOTE = (
    "kl_to_teacher is KL(student || teacher) in nats per token of the model's own samples, "
    "/first_half and /second_half of the halves of these, and forward_kl_to_teacher is the other "
    "KL. /gone and /right are of the samples of its start, behind prefixes that have gone wrong or "
    "have not. share_gone is the share of tokens of its own samples behind a wrong prefix."
)
TEACHER_NAMES = {name for family in ROWS for name in family.teacher_quantities}
TEXT_NAMES = {name for family in ROWS for name in family.text_quantities}
SCORE_NAMES = {name for family in ROWS for name in family.solution_quantities}
OVERRATED_NAMES = {name for name in SCORE_NAMES if "overrated" in name}
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
    subject, notes = subject_and_notes(names)
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


def subject_and_notes(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return what quantities of these names are measured of, and the notes that explain them."""
    kinds = {name.removesuffix(SEEN) for name in names}
    rows = (
        (PAIR_NAMES, OF_PAIRS, PAIRS_NOTE),
        (REWARD_NAMES, OF_PAIRS, REWARDS_NOTE),
        (SCORE_NAMES, OF_SCORES, SCORES_NOTE),
        (OVERRATED_NAMES, OF_SCORES, OVERRATED_NOTE),
        (TEXT_NAMES, OF_TEXTS, TEXTS_NOTE),
        (TEACHER_NAMES, OF_TEACHER, TEACHER_NOTE),
    )
    measured = [(subject, note) for of_kind, subject, note in rows if kinds & of_kind]
    subject = measured[-1][0] if measured else OF_TOKENS
    return subject, [note for _, note in measured]


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
