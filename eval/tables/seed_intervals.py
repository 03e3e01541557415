"""Averages the scores of several seeds to one number with its interval."""

from collections.abc import Sequence
from statistics import fmean
from typing import TypeAlias

from eval.errors import BadValue
from eval.json_lines import JsonFields
from eval.sets.benchmarks import find_benchmark_or_none
from eval.tables.table import Cell

LIMITED = "limited"  # the mark of a cell that covers only a part of its test set
NORMAL = 1.959964  # half the width of a 95 % interval, in standard errors
SCORE_FIELDS = ("value", "low", "high", "n")
ScoreFields: TypeAlias = JsonFields  # the fields of a Score


def mean_interval(
    values: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    shared: bool,
    lower_bound: float = 0.0,
    upper_bound: float = 100.0,
) -> tuple[float, float, float]:
    """Return the mean of the seeds' values and its 95 % interval, clipped to the bounds.

    Seeds that each drew their own test problems include the sampling error of the problems in their
    spread. With `shared` problems that error does not shrink with the number of seeds, and it is
    estimated from the scores' own intervals. A single seed keeps its interval.

    Args:
        values: The score of each seed.
        lows: The lower end of each score's 95 % interval.
        highs: The upper end of each score's 95 % interval.
        shared: Whether the seeds answered the same test problems.
        lower_bound: The smallest possible value.
        upper_bound: The largest possible value.

    Raises:
        ValueError: there are no seeds.
    """
    from eval.stats.seeds import over_seeds  # importing scipy takes half a second

    mean = fmean(values)
    half = (fmean(highs) - fmean(lows)) / 2
    seeds_mean = over_seeds(values, shared=(half / NORMAL) ** 2 if shared else 0.0)
    if seeds_mean is None:  # one seed, or equal values
        low, high = fmean(lows), fmean(highs)
    else:
        low, high = seeds_mean.interval()
    return mean, max(lower_bound, low), min(upper_bound, high)


def mean_cell(scores: Sequence[ScoreFields]) -> Cell:
    """Build the cell of one system and benchmark from its `Score` dicts, one for each seed.

    Raises:
        BadValue: a score lacks a field, covers a part of its test set without being marked as
            limited, or the seeds were scored on different numbers of problems.
    """
    for score in scores:
        check_score(score)
    sizes = {score["n"] for score in scores}
    if len(sizes) != 1:
        raise BadValue(
            f"{scores[0].get('benchmark')}: the seeds were scored on {sorted(sizes)} problems; "
            "their mean needs the same problems for all"
        )
    mean, low, high = mean_interval(
        [score["value"] for score in scores],
        [score["low"] for score in scores],
        [score["high"] for score in scores],
        shared=same_problems(scores),
    )
    mark = LIMITED if any(score.get("limited") for score in scores) else None
    return Cell(mean, low=low, high=high, n=sizes.pop(), seeds=len(scores), mark=mark)


def check_score(score: ScoreFields) -> None:
    """Raise `BadValue` if a score lacks a field or covers a part of its set without a mark."""
    missing = [name for name in SCORE_FIELDS if score.get(name) is None]
    if missing:
        raise BadValue(f"score {dict(score)}: no {', '.join(missing)}")
    benchmark = find_benchmark_or_none(score.get("benchmark", ""))
    if benchmark and score["n"] != benchmark.n and not score.get("limited"):
        raise BadValue(
            f"{benchmark.name}: the score covers {score['n']} problems, but the set has "
            f"{benchmark.n}: a table accepts it only if it is marked as limited"
        )


def same_problems(scores: Sequence[ScoreFields]) -> bool:
    """Return whether any two seeds answered the same test problems: they have equal draws."""
    return len({score.get("draw") for score in scores}) < len(scores)
