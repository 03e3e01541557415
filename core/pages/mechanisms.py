"""The statistics by which mechanisms show in training, of each arm: clips, lengths, margins, ...

A statistic is the mean over the seeds, with the lowest and the highest seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from core.claims import MissingMeasure, early, late
from core.claims.gates import accuracies
from core.pages.runs import by_arm
from core.paper import Paper
from core.records.schema import RunRecord
from eval.tables.arm_statistics import ArmRow, ArmStatistics, Measured

Ends = Callable[[RunRecord, str], tuple[float | None, float]]


@dataclass(frozen=True)
class Statistic:
    """A column of the table: its title, the decimals, and how a run's value is read.

    `read` returns the value at the start, None for a mean over the whole training, and that at the
    end of training.
    """

    title: str
    places: int
    read: Ends


def start_and_end(metric: str) -> Ends:
    """Return a function from a run and an arm to (first point, mean of the last third)."""
    return lambda run, arm: (early(metric, 0).read(run, arm), late(metric).read(run, arm))


def whole_curve(metric: str, factor: float = 1.0) -> Ends:
    """Return a function from a run and an arm to (None, `factor` times the mean of the curve)."""
    return lambda run, arm: (None, factor * late(metric, 0).read(run, arm))


STATISTICS = (
    Statistic("Accuracy, %", 1, lambda run, arm: accuracies(run, arm)[0]),
    Statistic("Entropy, nats", 2, start_and_end("entropy")),
    Statistic("Length, tokens", 1, start_and_end("completions/mean_length")),
    Statistic("Length of wrong answers", 1, start_and_end("completions/wrong_mean_length")),
    Statistic("Answers cut, %", 1, whole_curve("completions/clipped_ratio", 100)),
    Statistic("Groups without signal, %", 1, whole_curve("frac_reward_zero_std", 100)),
    Statistic("Tokens clipped, %", 1, whole_curve("clip_ratio/region_mean", 100)),
    Statistic("KL to the start, nats", 3, start_and_end("kl")),
    Statistic("Sampler gap, nats", 3, whole_curve("sampling/sampling_logp_difference/mean")),
    Statistic("Share of pairs in order", 2, start_and_end("rewards/accuracies")),
    Statistic("Margin of rewards", 2, start_and_end("rewards/margins")),
)


def arm_statistics(
    papers: Sequence[tuple[Paper, Sequence[RunRecord]]],
) -> ArmStatistics | None:
    """Return the statistics of the arms of papers; None without runs.

    Args:
        papers: each with its runs, the newest of every arm and seed.
    """
    rows = [
        ArmRow(
            paper.slug,
            arm,
            len(arm_runs),
            tuple(read_statistic(statistic, arm_runs, arm) for statistic in STATISTICS),
        )
        for paper, runs in papers
        for arm, arm_runs in by_arm(paper, runs).items()
    ]
    logged = [i for i in range(len(STATISTICS)) if any(row.cells[i] for row in rows)]
    if not logged:
        return None
    return ArmStatistics(
        tuple(STATISTICS[i].title for i in logged),
        tuple(
            ArmRow(row.paper, row.arm, row.seeds, tuple(row.cells[i] for i in logged))
            for row in rows
        ),
    )


def read_statistic(statistic: Statistic, runs: Sequence[RunRecord], arm: str) -> Measured | None:
    """Return a statistic over the runs of an arm; None if one of them does not log it."""
    try:
        ends = [statistic.read(run, arm) for run in runs]
    except MissingMeasure:
        return None
    starts, last = [start for start, _ in ends if start is not None], [end for _, end in ends]
    start = fmean(starts) if starts else None
    return Measured(start, fmean(last), min(last), max(last), statistic.places)
