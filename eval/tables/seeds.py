"""One number from the scores of several seeds on the same problems, with an honest interval."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from eval.errors import BadValue
from eval.sets.benchmarks import known_benchmark
from eval.tables.table import Cell

LIMITED = "limited"  # the mark of a cell that covers only a part of its test set
SCORE_FIELDS = ("value", "low", "high", "n")


def mean_interval(
    values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> tuple[float, float, float]:
    """Average S seeds with a 95 % interval for both sources of error, in percent.

    The seeds share their test problems, so the error of drawing the problems does not shrink with
    S, and the error of drawing seeds is s / sqrt(S) with t(S-1). The two distances from the mean
    are added in squares on either side (MOVER, Zou and Donner 2008); one seed keeps its interval.
    """
    from scipy.special import stdtrit  # here: half a second that a table of one seed does not need

    count, mean = len(values), fmean(values)
    spread = stdev(values) / sqrt(count) * float(stdtrit(count - 1, 0.975)) if count > 1 else 0.0
    below = sqrt((mean - fmean(lows)) ** 2 + spread**2)
    above = sqrt((fmean(highs) - mean) ** 2 + spread**2)
    return mean, max(0.0, mean - below), min(100.0, mean + above)


def mean_cell(scores: Sequence[Mapping[str, Any]]) -> Cell:
    """Build the cell of one system and benchmark from its Score dicts, one per seed.

    Raises:
        BadValue: a score lacks a field, is of a part of its test set without saying so, or the
            seeds were scored on different numbers of problems.

    """
    for score in scores:
        missing = [name for name in SCORE_FIELDS if score.get(name) is None]
        if missing:
            raise BadValue(f"score {dict(score)}: no {', '.join(missing)}")
        known = known_benchmark(score.get("benchmark", ""))
        if known and score["n"] != known.n and not score.get("limited"):
            raise BadValue(
                f"{known.name}: a score over {score['n']} problems, but the set has {known.n}: "
                "it enters no table unless it is marked as limited"
            )
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
    )
    mark = LIMITED if any(score.get("limited") for score in scores) else None
    return Cell(mean, low=low, high=high, n=sizes.pop(), seeds=len(scores), mark=mark)
