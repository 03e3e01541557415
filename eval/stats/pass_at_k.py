"""Exact expectations of Pass@K estimators, as sums over the number of correct samples."""

from itertools import pairwise
from math import comb, fsum

from eval.stats.estimates import pass_at_k

RATES = (0.01, 0.1, 0.3, 0.5, 0.9)  # of right samples
K = 10


def chances(n: int, rate: float) -> list[float]:
    """Return the binomial probabilities that 0, 1, ..., n of n samples are correct."""
    return [comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)]


def truth() -> list[float]:
    """Return the true Pass@K, 1 - (1 - p)^K, for each of `RATES`."""
    return [1 - (1 - rate) ** K for rate in RATES]


def expected(n: int) -> list[float]:
    """Return the mean of the unbiased estimate from n samples, for each of `RATES`."""
    return [
        fsum(chance * pass_at_k(n, c, K) for c, chance in enumerate(chances(n, rate)))
        for rate in RATES
    ]


def expected_plug_in(n: int) -> list[float]:
    """Return the mean of 1 - (1 - c / n)^K for each of `RATES`, with c of n samples correct."""
    return [
        fsum(chance * (1 - (1 - c / n) ** K) for c, chance in enumerate(chances(n, rate)))
        for rate in RATES
    ]


def variance(n: int) -> list[float]:
    """Return the variance of the unbiased estimate from n samples, for each of `RATES`."""
    return [
        fsum(chance * (pass_at_k(n, c, K) - mean) ** 2 for c, chance in enumerate(chances(n, rate)))
        for rate, mean in zip(RATES, expected(n), strict=True)
    ]


def decreases(n: int) -> int:
    """Count the falls of the estimate from one K to the next, for all counts of correct samples."""
    curves = [[pass_at_k(n, c, k) for k in range(1, n + 1)] for c in range(n + 1)]
    return sum(a > b for curve in curves for a, b in pairwise(curve))
