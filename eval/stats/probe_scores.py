"""Scores of probes over seeds, and their aggregates over probes.

The aggregates are those of Agarwal et al., arXiv 2108.13264: the interquartile mean and the
probability of improvement, with intervals from a bootstrap that is stratified by probe.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eval.errors import BadValue
from eval.stats.seeds import LEVEL, over_seeds

Numbers: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = Sequence[Sequence[float] | Numbers]  # of each probe, one for each seed
DRAWS = 2000
ADMITTED = 3.0  # standard errors by which the pair of a probe differs at least


@dataclass(frozen=True)
class ProbeScore:
    """A mean over seeds with its interval; the ends are None with fewer than two seeds."""

    value: float
    low: float | None
    high: float | None

    @property
    def is_apart(self) -> bool:
        """True if the interval does not contain 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class PairEffect:
    """The effect of the mechanism that a probe was made for, and its standard error."""

    value: float
    error: float

    @property
    def ratio(self) -> float:
        """The effect in standard errors."""
        return self.value / self.error if self.error else float("inf")

    @property
    def is_admitted(self) -> bool:
        """True if the effect is large enough for scores in its unit."""
        return self.ratio >= ADMITTED


def differences(first: Sequence[float], second: Sequence[float], *, falls: bool) -> list[float]:
    """Return by how much the first values are better than the second, seed by seed.

    Args:
        first: Values of one algorithm, one for each seed.
        second: Values of another one with the same seeds.
        falls: Whether smaller values are better.
    """
    sign = -1.0 if falls else 1.0
    return [sign * (a - b) for a, b in zip(first, second, strict=True)]


def pair_effect(values: Sequence[float]) -> PairEffect:
    """Return the mean of differences over seeds, with its standard error.

    Raises:
        BadValue: there are fewer than two seeds.
    """
    if len(values) < 2:
        raise BadValue(f"{len(values)} seeds: expected at least 2 for a standard error")
    column = np.asarray(values, dtype=float)
    return PairEffect(float(column.mean()), float(column.std(ddof=1) / len(column) ** 0.5))


def probe_score(values: Sequence[float], unit: float, level: float = LEVEL) -> ProbeScore:
    """Return the mean of differences over seeds in units of an effect, with Student's interval.

    The effect counts as known: its own error is stated beside the scores.
    """
    scores = [value / unit for value in values]
    mean, middle = over_seeds(scores), float(np.mean(scores))
    if mean is None:
        return ProbeScore(middle, None, None)
    return ProbeScore(middle, *mean.interval(level))


def interquartile_mean(scores: Scores) -> Numbers:
    """Return the mean of the middle half of all scores; a score at the border counts in part.

    Args:
        scores: Of each probe an array (..., n) of the scores of n seeds.
    """
    column = np.sort(np.concatenate([np.asarray(row, dtype=float) for row in scores], axis=-1))
    n = column.shape[-1]
    ends = np.arange(n + 1, dtype=float)
    inside = np.clip(np.minimum(ends[1:], 0.75 * n) - np.maximum(ends[:-1], 0.25 * n), 0.0, 1.0)
    return column @ inside / inside.sum()


def probability_of_improvement(scores: Scores) -> Numbers:
    """Return the probability that an algorithm is better than its base on a drawn probe and seed.

    Args:
        scores: Of each probe an array (..., n) of differences to the base with the same n seeds;
            equal values count half.
    """
    rows = [np.asarray(row, dtype=float) for row in scores]
    return np.mean([np.mean((row > 0) + 0.5 * (row == 0), axis=-1) for row in rows], axis=0)


def stratified_interval(
    scores: Scores,
    statistic: Callable[[Scores], Numbers],
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile interval of a statistic, with the seeds of each probe drawn anew."""
    random = np.random.default_rng(seed)
    rows = [np.asarray(row, dtype=float) for row in scores]
    sizes = [len(row) for row in rows]
    places = random.integers(np.repeat(sizes, sizes), size=(draws, sum(sizes)))
    parts = np.split(places, np.cumsum(sizes)[:-1], axis=1)
    drawn = [row[part] for row, part in zip(rows, parts, strict=True)]
    low, high = np.quantile(statistic(drawn), [level / 2, 1 - level / 2])
    return float(low), float(high)
