"""Estimates from graded samples with their intervals: proportions, Pass@K, Maj@K and means."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit  # scipy.stats takes seconds to import

from eval.errors import BadValue

LEVEL = 0.95
GATE_LEVEL = 0.90  # of the interval that two one-sided tests at 5 % look at
SMALL = 100  # below this many problems the exact interval (arXiv 2503.01747)
DRAWS = 2000
ENUMERATED = 3000  # subsets that are still enumerated instead of drawn


@dataclass(frozen=True)
class Estimate:
    """An estimated value with its interval and the name of the interval's method."""

    value: float
    low: float
    high: float
    method: str


def wilson(right: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the score interval of a proportion: all p with |p - right/n| <= z sqrt(p (1 - p) / n).

    Raises:
        BadValue: `right` is not between 0 and n, or n is below 1.
    """
    check_counts(right, n)
    z = float(ndtri((1 + level) / 2))
    p, shrink = right / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / shrink
    half = z / shrink * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return (middle - half if right else 0.0), (middle + half if right < n else 1.0)


def clopper_pearson(right: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact interval of a proportion, which covers with at least `level` at any n.

    Raises:
        BadValue: `right` is not between 0 and n, or n is below 1.
    """
    check_counts(right, n)
    tail = (1 - level) / 2
    low = float(betaincinv(right, n - right + 1, tail)) if right else 0.0
    high = float(betaincinv(right + 1, n - right, 1 - tail)) if right < n else 1.0
    return low, high


def agresti_min(won: int, lost: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share's change over n pairs, with 0.5 added to each cell."""
    share_won, share_lost = (won + 0.5) / (n + 2), (lost + 0.5) / (n + 2)
    middle = share_won - share_lost
    half = float(ndtri(0.975)) * ((share_won + share_lost - middle**2) / (n + 2)) ** 0.5
    return middle - half, middle + half


def check_counts(right: int, n: int) -> None:
    """Raise `BadValue` unless 0 <= right <= n and n >= 1."""
    if n < 1 or not 0 <= right <= n:
        raise BadValue(f"{right} right of {n}: expected 0 <= right <= n and n >= 1")


def proportion(right: int, n: int, level: float = LEVEL) -> Estimate:
    """Return a share with Wilson's interval, or Clopper-Pearson's below 100 problems."""
    if n < SMALL:
        return Estimate(right / max(n, 1), *clopper_pearson(right, n, level), "clopper-pearson")
    return Estimate(right / n, *wilson(right, n, level), "wilson")


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n - c, k) / C(n, k) of Pass@K (arXiv 2107.03374 eq. 1).

    Args:
        n: Samples of the problem.
        right: Correct ones among them, c in the equation.
        k: Samples of which one must be correct.

    Raises:
        BadValue: k is larger than n or below 1, or `right` is not between 0 and n.
    """
    check_k(n, k)
    if not 0 <= right <= n:
        raise BadValue(f"{right} right of {n} samples: expected 0 <= right <= n")
    return float(1 - Fraction(comb(n - right, k), comb(n, k)))


def best_of_k(ratings: Sequence[float], right: Sequence[bool], k: int) -> float:
    """Return how often the highest rated of any k samples is correct, a share of 1.

    It is the mean over all choices of k of the n samples. Of samples that share the highest rating
    each is the best one equally often.

    Args:
        ratings: The rating of each sample.
        right: Whether each sample is correct.
        k: Samples of which the best one counts.

    Raises:
        BadValue: k is larger than n or below 1.
    """
    check_k(len(ratings), k)
    by_rating: dict[float, list[bool]] = {}
    for rating, is_right in zip(ratings, right, strict=True):
        by_rating.setdefault(rating, []).append(is_right)
    expected: Fraction | int = 0  # of integers alone unless samples share a rating
    left = len(ratings)
    for rating in sorted(by_rating, reverse=True):
        alike = by_rating[rating]
        choices = comb(left, k) - comb(left - len(alike), k)  # whose best sample has this rating
        hits = choices * sum(alike)
        expected += hits if len(alike) == 1 else Fraction(hits, len(alike))
        left -= len(alike)
    return float(Fraction(expected) / comb(len(ratings), k))


def check_k(n: int, k: int) -> None:
    """Raise `BadValue` unless 1 <= k <= n."""
    if not 1 <= k <= n:
        raise BadValue(f"K={k} with {n} samples per problem: expected 1 <= K <= {n}")


@dataclass(frozen=True)
class Votes:
    """The samples of one problem, counted by answer.

    `counts[i]` samples gave answer i, and `right[i]` says whether that answer is correct; `blank`
    samples gave no answer.
    """

    counts: tuple[int, ...]
    right: tuple[bool, ...]
    blank: int = 0

    @property
    def n(self) -> int:
        """The number of samples, with those without an answer."""
        return sum(self.counts) + self.blank


@lru_cache(maxsize=65536)
def maj_at_k(votes: Votes, k: int, *, seed: int = 0) -> float:
    """Return the expected score of the most frequent answer among k of the n samples.

    Tied answers share the vote equally. Samples without an answer can be among the k but do not
    vote; a draw without any vote scores 0. All subsets of size k are enumerated if there are at
    most 3000, else 2000 of them are drawn with `seed`.

    Raises:
        BadValue: k is larger than the number of samples, or below 1.
    """
    check_k(votes.n, k)
    sizes = (*votes.counts, votes.blank)
    if comb(votes.n, k) <= ENUMERATED:
        labels = [label for label, size in enumerate(sizes) for _ in range(size)]
        chosen = np.array(list(combinations(labels, k)))
        votes_by_draw = np.stack([(chosen == label).sum(1) for label in range(len(sizes))], axis=1)
    else:
        random = np.random.default_rng(seed)
        votes_by_draw = random.multivariate_hypergeometric(sizes, k, size=DRAWS, method="marginals")
    return plurality(votes_by_draw[:, :-1], np.array(votes.right, dtype=bool))


def plurality(counts: NDArray[np.int64], right: NDArray[np.bool_]) -> float:
    """Return the mean over the rows of the share of correct answers among the most frequent ones.

    Args:
        counts: Votes for each answer, of shape (draws, answers).
        right: Whether each answer is correct, of shape (answers,).
    """
    if counts.shape[1] == 0:
        return 0.0
    top = counts.max(axis=1, keepdims=True)
    winners = (counts == top) & (top > 0)
    shares = (winners & right).sum(axis=1) / np.maximum(winners.sum(axis=1), 1)
    return float(shares.mean())


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return the mean over problems with Student's interval; the problem is the unit for any K.

    If all values are equal, Student's interval would have no width. The interval is then the mean
    plus or minus 1 - ((1 - level) / 2) ** (1 / n), the Clopper-Pearson bound on the share of
    problems that differ when none of n did.

    Raises:
        BadValue: there are fewer than two values.
    """
    n = len(values)
    if n < 2:
        raise BadValue(f"a mean of {n} problems has no interval: expected at least 2")
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    if spread == 0:
        unseen = 1 - ((1 - level) / 2) ** (1 / n)
        return Estimate(mean, mean - unseen, mean + unseen, "no spread")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * spread / n**0.5
    return Estimate(mean, mean - half, mean + half, "student over problems")


def bootstrap(
    values: Sequence[float], *, seed: int = 0, draws: int = DRAWS, level: float = LEVEL
) -> Estimate:
    """Return the mean with the percentile interval of problems resampled with replacement.

    With fewer than two values or without spread, return `mean_interval(values, level)`.
    """
    array = np.asarray(values, dtype=float)
    if array.size < 2 or float(array.std()) == 0:
        return mean_interval(values, level)
    random = np.random.default_rng(seed)
    resamples = random.integers(array.size, size=(draws, array.size))
    low, high = np.quantile(array[resamples].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(array.mean()), float(low), float(high), "bootstrap over problems")


def variance_parts(rows: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the variance of the problems' true means, and that of one sample within its problem.

    The first is the variance of the observed problem means less the noise of K samples, within / K,
    and never negative.

    There must be at least two problems, each with a sample.
    """
    within = float(np.mean([float(np.var(row, ddof=1)) if len(row) > 1 else 0.0 for row in rows]))
    means = [float(np.mean(row)) for row in rows]
    k = min(len(row) for row in rows)
    return max(0.0, float(np.var(means, ddof=1)) - within / k), within
