"""What estimators of Pass@K give on average, as exact sums over how many samples are right."""

from itertools import pairwise
from math import comb, fsum

from eval.stats.estimates import pass_at_k

RATES = (0.01, 0.1, 0.3, 0.5, 0.9)  # of right samples
K = 10


def chances(n: int, rate: float) -> list[float]:
    """The chance that 0, 1, ..., n of n samples are right."""
    return [comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)]


def truth() -> list[float]:
    """1 - (1 - p)^K for each of `RATES`: whether one of K samples is right."""
    return [1 - (1 - rate) ** K for rate in RATES]


def expected(n: int) -> list[float]:
    """The mean of the estimate from n samples, for each of `RATES`."""
    return [
        fsum(chance * pass_at_k(n, c, K) for c, chance in enumerate(chances(n, rate)))
        for rate in RATES
    ]


def expected_plug_in(n: int) -> list[float]:
    """The mean of 1 - (1 - c / n)^K with c of n samples right, for each of `RATES`."""
    return [
        fsum(chance * (1 - (1 - c / n) ** K) for c, chance in enumerate(chances(n, rate)))
        for rate in RATES
    ]


def variance(n: int) -> list[float]:
    """The variance of the estimate from n samples, for each of `RATES`."""
    return [
        fsum(chance * (pass_at_k(n, c, K) - mean) ** 2 for c, chance in enumerate(chances(n, rate)))
        for rate, mean in zip(RATES, expected(n), strict=True)
    ]


def decreases(n: int) -> int:
    """How often Pass@K falls from one K to the next, over all numbers of right samples of n."""
    curves = [[pass_at_k(n, c, k) for k in range(1, n + 1)] for c in range(n + 1)]
    return sum(a > b for curve in curves for a, b in pairwise(curve))
