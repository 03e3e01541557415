"""What several seeds say: the mean with its interval, and a verdict on what was claimed of it.

The seeds are a sample: each is a replication of its own, and whatever they differ in (the start
policy, the order of the data, the drawing of samples and of test problems) is in the spread of
their values. Where all of them answer the same test problems, the drawing of those is not, and
its variance is added. Each comparison has its own spread: how far arms scatter differs between
them, so one spread for all arms would be too narrow for some (`reports/rates.md`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, isfinite, sqrt
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats takes seconds to import

from eval.errors import BadValue

Verdict = Literal["held", "refuted", "tie", "undecided"]
LEVEL = 0.05
POWER = 0.80
# Where the bound of a relation lies, in margins; an equivalence has one on either side.
BOUNDS = {">": 1, ">=": -1, "<": -1, "<=": 1, "~=": 1}
NO_SPREAD = 1e-12  # of the mean: rounding, not spread


@dataclass(frozen=True)
class Look:
    """A number of seeds at which claims are judged, and the share of errors that this look has."""

    seeds: int
    level: float = LEVEL


# Together 5 %: whoever stops at the first look that decides is wrong no more often than that.
LOOKS = (Look(3, 0.015), Look(5, 0.015), Look(8, 0.02))


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, its standard error, and the degrees of freedom of that error."""

    value: float
    error: float
    freedom: float

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Student's interval, which misses in a share `level` of all cases."""
        half = quantile(1 - level / 2, self.freedom) * self.error
        return self.value - half, self.value + half

    def p(self, bound: float) -> float:
        """Two-sided p that the true mean is at `bound`."""
        return 2 * float(stdtr(self.freedom, -abs(self.value - bound) / self.error))

    def seen(self, level: float = LEVEL) -> float:
        """The smallest true effect that is decided at `level` in four of five cases."""
        return detectable(self.error, self.freedom, level)


@dataclass(frozen=True)
class Effect:
    """A claim's effect over seeds; no interval from fewer than two seeds, or without spread.

    `seen` is the smallest true effect that so many seeds with this spread would have decided in
    four of five cases.
    """

    effect: float
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict
    n_seeds: int
    freedom: float | None = None
    seen: float | None = None


def over_seeds(values: Sequence[float], *, shared: float = 0.0) -> Mean | None:
    """The mean of independent seeds; None from fewer than two, or where nothing varies.

    `shared` is the variance of the mean that comes with test problems that all seeds share: it
    does not shrink with their number. The degrees of freedom of the sum are Satterthwaite's.
    """
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    own = float(np.var(values, ddof=1)) / n
    if own + shared <= (NO_SPREAD * max(1.0, abs(mean))) ** 2:
        return None
    freedom = (n - 1) * ((own + shared) / own) ** 2 if own > 0 else float("inf")
    return Mean(mean, sqrt(own + shared), min(freedom, 1e9))


def seed_effect(
    differences: Sequence[float],
    margin: float = 0.0,
    op: str = ">",
    *,
    level: float = LEVEL,
    shared: float = 0.0,
    equal: float = 0.0,
) -> Effect:
    """Does `left op right` hold over seeds, given left - right of each seed?

    Student's interval of the mean difference must lie on the claimed side of a bound: margin for
    `>` and `<=`, -margin for `>=` and `<`. On the other side altogether it is refuted. Neither,
    it is a tie if two one-sided tests place the difference within `equal` of zero (an interval
    that misses in twice the `level`; 90 % for 5 %); that a `~=` holds is the same with its margin.
    Fewer than two seeds decide nothing. Without any spread the seeds carry no estimate of their
    noise, so only their number speaks: the sign test, p = 2 / 2**n.

    Raises:
        BadValue: an unknown op, a negative margin, or a difference that is not finite.
    """
    if op not in BOUNDS or margin < 0 or not all(map(isfinite, differences)):
        raise BadValue(
            f"op={op!r}, margin={margin}, differences={list(differences)}: "
            f"expected {', '.join(BOUNDS)}, a margin of at least 0 and finite differences"
        )
    n = len(differences)
    effect = float(np.mean(differences)) if n else 0.0
    if n < 2:
        return Effect(effect, None, None, None, "undecided", n)
    bound = copysign(margin, effect) if op == "~=" else BOUNDS[op] * margin  # the nearer of two
    mean = over_seeds(differences, shared=shared)
    if mean is None:
        p = 1.0 if abs(effect - bound) <= NO_SPREAD else min(1.0, 2 * 0.5**n)
        at = (effect, effect)
        decided = decide(at, at, margin, op, equal) if p < level else "undecided"
        return Effect(effect, None, None, p, decided, n)
    low, high = mean.interval(level)
    verdict = decide((low, high), mean.interval(2 * level), margin, op, equal)
    one_sided = op == "~=" and abs(effect) < margin  # the larger p of the two one-sided tests
    p = mean.p(bound) / (2 if one_sided else 1)
    return Effect(effect, low, high, p, verdict, n, mean.freedom, mean.seen(level))


def decide(
    outer: tuple[float, float], inner: tuple[float, float], margin: float, op: str, equal: float
) -> Verdict:
    """Where the outer interval lies: on the claimed side of the bound, on the other, or across.

    Across the bound it is a tie if the inner interval lies within `equal` of zero.
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
    """Whether an interval lies within a margin on both sides of zero."""
    return -margin < interval[0] and interval[1] < margin


def detectable(error: float, freedom: float, level: float = LEVEL) -> float:
    """The true effect that a two-sided test with this standard error finds with 80 % power."""
    return (quantile(1 - level / 2, freedom) + quantile(POWER, freedom)) * error


def quantile(p: float, freedom: float) -> float:
    """Of Student's distribution."""
    return float(stdtrit(freedom, p))
