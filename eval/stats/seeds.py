"""Statistics over training seeds: a mean with its interval, and the verdict on a claim about it.

Each seed is one replication. All that differs between seeds (the start policy, the order of the
data, the sampled answers and the drawn test problems) contributes to the spread of their values. If
all seeds answer the same test problems, the sampling variance of those problems is added. Each
comparison is judged by its own spread: the spread over seeds differs between arms, and one pooled
spread would be too narrow for some comparisons (`reports/rates.md`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, exp, isfinite, log, sqrt
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit  # scipy.stats takes seconds to import

from eval.errors import BadValue

Verdict = Literal["held", "refuted", "tie", "undecided"]
LEVEL = 0.05
POWER = 0.80
# The bound of each relation, as a multiple of the margin; an equivalence has one on either side.
BOUNDS = {">": 1, ">=": -1, "<": -1, "<=": 1, "~=": 1}
SMALLEST_P, PRECISION = 1e-300, 1e-12  # of a p value, and of its logarithm
NO_SPREAD = 1e-12  # relative to the mean: a smaller spread is rounding


@dataclass(frozen=True)
class Look:
    """A number of seeds at which claims are judged, and the error rate spent at that number."""

    seeds: int
    level: float = LEVEL


# The levels sum to 5 %: the error rate of stopping at the first look that decides.
LOOKS = (Look(3, 0.015), Look(5, 0.015), Look(8, 0.02))
# In the nano worlds seeds are cheap, so most of the error rate is left for the last look.
NANO_LOOKS = (Look(4, 0.01), Look(8, 0.015), Look(16, 0.025))


@dataclass(frozen=True)
class Mean:
    """A mean over seeds and the variances of it.

    `own` is the variance estimated from the spread over seeds, with `freedom` degrees of freedom.
    `shared` is the known variance caused by test problems that all seeds share.
    """

    value: float
    own: float
    freedom: int
    shared: float = 0.0

    def half_width(self, level: float) -> float:
        """Return half the width of the interval with coverage 1 - level.

        It is sqrt(t^2 own + z^2 shared), with the quantiles of Student's and the normal
        distribution. Its coverage is exact where either variance is 0 and at least 1 - level
        between (`reports/rates.md`).
        """
        t, z = quantile(1 - level / 2, self.freedom), float(ndtri(1 - level / 2))
        return (t * t * self.own + z * z * self.shared) ** 0.5

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the confidence interval of the mean with coverage 1 - level."""
        half = self.half_width(level)
        return self.value - half, self.value + half

    def p(self, bound: float) -> float:
        """Return the two-sided p value of the hypothesis that the true mean is `bound`.

        It is the level whose interval ends at `bound`.
        """
        distance = abs(self.value - bound)
        if not self.shared:
            return 2 * float(stdtr(self.freedom, -distance / sqrt(self.own)))
        low, high = log(SMALLEST_P), 0.0  # half_width falls from the one to the other
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if self.half_width(exp(middle)) > distance else (low, middle)
        return exp(high)

    def detectable(self, level: float = LEVEL) -> float:
        """Return the smallest true effect that a test at `level` detects with 80 % power."""
        return self.half_width(level) + self.half_width(2 * (1 - POWER))


@dataclass(frozen=True)
class Effect:
    """The effect of a claim over seeds, with its interval, p value and verdict.

    `low` and `high` are None with fewer than two seeds or without any spread. `detectable` is the
    smallest true effect that a test with this number of seeds and this spread detects with 80 %
    power.
    """

    effect: float
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict
    n_seeds: int
    freedom: int | None = None
    detectable: float | None = None


def over_seeds(values: Sequence[float], *, shared: float = 0.0) -> Mean | None:
    """Return the mean of independent seeds; None with fewer than two seeds or without any variance.

    Args:
        values: One value for each seed.
        shared: Variance of the mean caused by test problems that all seeds share. It does not
            shrink with the number of seeds.
    """
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    variance = float(np.var(values, ddof=1)) / n
    if variance + shared <= (NO_SPREAD * max(1.0, abs(mean))) ** 2:
        return None
    return Mean(mean, variance, n - 1, shared)


def seed_effect(
    differences: Sequence[float],
    margin: float = 0.0,
    op: str = ">",
    *,
    level: float = LEVEL,
    shared: float = 0.0,
    equal: float = 0.0,
) -> Effect:
    """Return the effect over seeds and the verdict on the claim `left op right`.

    The interval of the mean of `differences`, left - right of each seed, is compared with a
    bound: margin for `>` and `<=`, -margin for `>=` and `<`. On the claimed side the claim holds,
    on the other side it is refuted. If the interval contains the bound, the verdict is a tie when
    two one-sided tests (the interval with coverage 1 - 2 * level) place the difference within
    `equal` of zero, else undecided. A claim with `~=` holds when the same tests place it within
    `margin`. Fewer than two seeds are undecided. Without any spread, p is that of the sign test, 2
    / 2**n. For `shared` see `over_seeds`.

    Raises:
        BadValue: an unknown op, a negative margin, or a difference that is not finite.
    """
    check_claim(differences, margin, op)
    n = len(differences)
    effect = float(np.mean(differences)) if n else 0.0
    if n < 2:
        return Effect(effect, None, None, None, "undecided", n)
    bound = copysign(margin, effect) if op == "~=" else BOUNDS[op] * margin  # the nearer of two
    mean = over_seeds(differences, shared=shared)
    if mean is None:
        p = 1.0 if abs(effect - bound) <= NO_SPREAD else min(1.0, 2 * 0.5**n)
        point = (effect, effect)
        verdict = decide(point, point, margin, op, equal) if p < level else "undecided"
        return Effect(effect, None, None, p, verdict, n)
    low, high = mean.interval(level)
    verdict = decide((low, high), mean.interval(2 * level), margin, op, equal)
    one_sided = op == "~=" and abs(effect) < margin  # the larger p of the two one-sided tests
    p = mean.p(bound) / (2 if one_sided else 1)
    return Effect(effect, low, high, p, verdict, n, mean.freedom, mean.detectable(level))


def check_claim(differences: Sequence[float], margin: float, op: str) -> None:
    """Raise `BadValue` for an unknown op, a negative margin or a difference that is not finite."""
    if op not in BOUNDS or margin < 0 or not all(map(isfinite, differences)):
        raise BadValue(
            f"op={op!r}, margin={margin}, differences={list(differences)}: "
            f"expected {', '.join(BOUNDS)}, a margin of at least 0 and finite differences"
        )


def decide(
    outer: tuple[float, float], inner: tuple[float, float], margin: float, op: str, equal: float
) -> Verdict:
    """Return the verdict from the side of the bound on which the outer interval lies.

    If the outer interval contains the bound, the verdict is a tie when the inner interval lies
    within `equal` of zero, else undecided.
    """
    (low, high), bound = outer, BOUNDS[op] * margin
    held, refuted = low > bound, high < bound
    if op in ("<", "<="):
        held, refuted = refuted, held
    if op == "~=":
        held, refuted = within(inner, margin), high < -margin or low > margin
    if held or refuted:
        return "held" if held else "refuted"
    return "tie" if within(inner, equal) else "undecided"


def within(interval: tuple[float, float], margin: float) -> bool:
    """Return whether an interval lies strictly between -margin and margin."""
    return -margin < interval[0] and interval[1] < margin


def detectable(error: float, freedom: int, level: float = LEVEL) -> float:
    """Return the true effect that a two-sided test with this error detects with 80 % power."""
    return Mean(0.0, error**2, freedom).detectable(level)


def quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's distribution at probability p."""
    return float(stdtrit(freedom, p))
