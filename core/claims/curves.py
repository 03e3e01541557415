"""Reductions of a curve to one number: what a logged metric does in the course of training.

A point of a curve is a step and a value; the last point's step is the length of training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import sqrt
from typing import Literal, TypeAlias, get_args

from core.claims.comparison import RELATIONS, Side
from core.claims.measures import START, VALIDATION, Measure, missing, record_of
from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Record, Runs

Curve: TypeAlias = Sequence[tuple[float, float]]
HELD_OUT_ACCURACY = f"{VALIDATION}accuracy"  # a percentage
Order: TypeAlias = Literal[">", ">=", "<", "<="]


@dataclass(frozen=True)
class OfCurve(Measure):
    """A function of the curve of one metric."""

    name: str
    metric: str
    reduce: Callable[..., float]
    options: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        wrong = {name: value for name, value in self.options.items() if not 0 <= value <= 1}
        if wrong:
            raise BadClaim(f"{self}: {wrong}; expected fractions of training, from 0 to 1")

    def __str__(self) -> str:
        return self.name

    @property
    def needs(self) -> tuple[Need, ...]:
        """The curve."""
        return (Need("curve", self.metric),)

    @property
    def percent(self) -> bool:
        """Whether it is of the accuracy on held-out problems."""
        return self.metric == HELD_OUT_ACCURACY

    def stand(self, record: Record, arm: str) -> tuple[float, float] | None:
        """The first and the last point of such a curve."""
        points = curve_of(record, arm, self.metric)
        return (points[0][1], points[-1][1]) if self.metric == HELD_OUT_ACCURACY else None

    def read(self, record: Record, arm: str) -> float:
        """The number that the curve comes to."""
        return self.reduce(curve_of(record, arm, self.metric), **self.options)


@dataclass(frozen=True)
class ShareOfCurve(OfCurve):
    """A share of a curve's points: from 0 to 1, whatever the curve is of."""

    @property
    def percent(self) -> bool:
        """It is none."""
        return False


@dataclass(frozen=True)
class AtBest(Measure):
    """The value of one metric where another is highest."""

    metric: str
    by: str

    def __str__(self) -> str:
        return f"best({self.metric}, by {self.by})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """Both curves."""
        return Need("curve", self.metric), Need("curve", self.by)

    def read(self, record: Record, arm: str) -> float:
        """The value at the step, or the nearest logged one."""
        step, _ = max(curve_of(record, arm, self.by), key=lambda point: point[1])
        return nearest(curve_of(record, arm, self.metric), step)


@dataclass(frozen=True, eq=False)
class Distance(Side):
    """How far the curves of two arms are apart."""

    metric: str
    arms: tuple[str, str]

    def __str__(self) -> str:
        return f"distance({self.metric} of {' and '.join(self.arms)})"

    @property
    def kinds(self) -> frozenset[Kind]:
        """Runs."""
        return frozenset({"runs"})

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """The curve of both arms."""
        return tuple((arm, Need("curve", self.metric)) for arm in self.arms)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """The mean size of the difference at the steps that both logged.

        Raises:
            MissingMeasure: they logged no step together.
        """
        return [self._value(runs) for runs in cases]

    def _value(self, runs: Runs) -> float:
        one, other = (dict(curve_of(record_of(runs, a), a, self.metric)) for a in self.arms)
        both = one.keys() & other.keys()
        if not both:
            raise MissingMeasure(f"{self}: the two have no step in common")
        return _mean([abs(one[step] - other[step]) for step in sorted(both)])


def distance(metric: str, one: str, other: str) -> Distance:
    """Mean absolute difference of a metric's curves on two arms, over the steps that both have."""
    return Distance(metric, (one, other))


def at_step(metric: str, step: int) -> OfCurve:
    """The first point that is logged at a step or after it; a shorter run has no such value."""
    return OfCurve(f"at_step({metric}, {step})", metric, partial(_at_step, step=step))


def early(metric: str, end: float = 1 / 3) -> OfCurve:
    """Mean of the points up to a fraction of training, the first third; at least the first."""
    name = f"early({metric})" if end == 1 / 3 else f"early({metric}, to {end:g})"
    return OfCurve(name, metric, _early, {"end": end})


def late(metric: str, begin: float = 2 / 3) -> OfCurve:
    """Mean of the points after a fraction of training, the last third; of all with `begin` 0."""
    name = f"late({metric})" if begin == 2 / 3 else f"late({metric}, from {begin:g})"
    return OfCurve(name, metric, _late, {"begin": begin})


def final(metric: str) -> OfCurve:
    """The last point."""
    return OfCurve(f"final({metric})", metric, _final)


def best(metric: str, by: str) -> AtBest:
    """The value at the step where the curve `by` is highest, the first such step.

    With `by` a curve of held-out problems it is the checkpoint that early stopping would keep.
    """
    return AtBest(metric, by)


def largest(metric: str) -> OfCurve:
    """The largest point."""
    return OfCurve(f"largest({metric})", metric, _largest)


def gain(metric: str, begin: float = 0.0, end: float = 1.0) -> OfCurve:
    """The point nearest to the fraction `end` of training minus that nearest to `begin`."""
    name = f"gain({metric}, {begin:g} to {end:g})"
    return OfCurve(name, metric, _gain, {"begin": begin, "end": end})


def fluctuation(metric: str, begin: float = 2 / 3) -> OfCurve:
    """Sample standard deviation of the points after a fraction of training, the last third."""
    name = f"fluctuation({metric})" if begin == 2 / 3 else f"fluctuation({metric}, from {begin:g})"
    return OfCurve(name, metric, _fluctuation, {"begin": begin})


def drawdown(metric: str) -> OfCurve:
    """The deepest fall from an earlier point to a later one; 0 for a curve that never falls."""
    return OfCurve(f"drawdown({metric})", metric, _drawdown)


def share_of_steps(metric: str, relation: Order, threshold: float, begin: float = 0.0) -> OfCurve:
    """The share, 0 to 1, of the points after a fraction of training that the relation holds for."""
    after = f", from {begin:g}" if begin else ""
    name = f"share_of_steps({metric} {relation} {threshold:g}{after})"
    if relation not in get_args(Order):
        raise BadClaim(f"{name}: expected one of {' '.join(get_args(Order))}")
    share = partial(_share, relation=relation, threshold=threshold)
    return ShareOfCurve(name, metric, share, {"begin": begin})


def curve_of(record: Record, arm: str, metric: str) -> Curve:
    """The points of a metric.

    Raises:
        MissingMeasure: none were logged; the starting model has no training to log.
    """
    points: Curve = () if arm == START else record["curves"].get(metric, ())
    if not points:
        raise missing(record, arm, f"curve {metric!r}")
    return points


def nearest(points: Curve, step: float) -> float:
    """The value of the point nearest to a step, the earlier of two."""
    return min(points, key=lambda point: abs(point[0] - step))[1]


def sample_deviation(values: Sequence[float]) -> float:
    """The standard deviation with n - 1 below; 0 for a single value."""
    middle = _mean(values)
    return sqrt(sum((value - middle) ** 2 for value in values) / max(1, len(values) - 1))


def _after(points: Curve, fraction: float) -> list[float]:
    begin = fraction * points[-1][0]
    return [value for step, value in points if step > begin or not fraction] or [points[-1][1]]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _early(points: Curve, end: float) -> float:
    last = end * points[-1][0]
    return _mean([value for step, value in points if step <= last] or [points[0][1]])


def _late(points: Curve, begin: float) -> float:
    return _mean(_after(points, begin))


def _final(points: Curve) -> float:
    return points[-1][1]


def _at_step(points: Curve, step: int) -> float:
    found = next((value for at, value in points if at >= step), None)
    if found is None:
        raise MissingMeasure(f"a run of {points[-1][0]:g} steps has no step {step}")
    return found


def _largest(points: Curve) -> float:
    return max(value for _, value in points)


def _gain(points: Curve, begin: float, end: float) -> float:
    last = points[-1][0]
    return nearest(points, end * last) - nearest(points, begin * last)


def _fluctuation(points: Curve, begin: float) -> float:
    return sample_deviation(_after(points, begin))


def _drawdown(points: Curve) -> float:
    values = [value for _, value in points]
    return max(peak - value for peak, value in zip(accumulate(values, max), values, strict=True))


def _share(points: Curve, relation: Order, threshold: float, begin: float) -> float:
    after = _after(points, begin)
    return _mean([float(RELATIONS[relation](value, threshold, 0.0)) for value in after])
