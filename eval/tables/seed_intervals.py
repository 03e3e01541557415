"""One number from the scores of several seeds, with its interval."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark_or_none
from eval.tables.table import Cell

LIMITED = "limited"  # the mark of a cell that covers only a part of its test set
NORMAL = 1.959964  # half the width of a 95 % interval, in standard errors
SCORE_FIELDS = ("value", "low", "high", "n")


def mean_interval(
    values: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    shared: bool,
    least: float = 0.0,
    most: float = 100.0,
) -> tuple[float, float, float]:
    """Average S seeds with a 95 % interval for both sources of error, from `least` to `most`.

    Seeds that each drew their own test problems have the error of that in their spread. Where
    they `shared` their problems, that error does not shrink with S; a score's own interval says
    how large it is. One seed keeps its interval.
    """
    from eval.stats.seeds import over_seeds  # half a second that a table of one seed does not need

    mean = fmean(values)
    half = (fmean(highs) - fmean(lows)) / 2
    found = over_seeds(values, shared=(half / NORMAL) ** 2 if shared else 0.0)
    if found is None:  # one seed, or seeds that all say the same
        return mean, max(least, fmean(lows)), min(most, fmean(highs))
    low, high = found.interval()
    return mean, max(least, low), min(most, high)


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
        known = find_benchmark_or_none(score.get("benchmark", ""))
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
        shared=same_problems(scores),
    )
    mark = LIMITED if any(score.get("limited") for score in scores) else None
    return Cell(mean, low=low, high=high, n=sizes.pop(), seeds=len(scores), mark=mark)


def same_problems(scores: Sequence[Mapping[str, Any]]) -> bool:
    """Whether several seeds answered the same test problems: no seed names a draw of its own."""
    return len({score.get("draw") for score in scores}) < len(scores)
