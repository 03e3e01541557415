"""Reductions of the curve of a logged metric to one number.

A point of a curve is a step and a value; the last point's step is the length of training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import sqrt
from typing import Literal, TypeAlias, get_args

from core.claims.comparison import RELATIONS, Side
from core.claims.margins import Unit, unit_of
from core.claims.measures import START, VALIDATION, Measure, missing, record_of
from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Record, Runs

Curve: TypeAlias = Sequence[tuple[float, float]]
HELD_OUT_ACCURACY = f"{VALIDATION}accuracy"  # a percentage
Order: TypeAlias = Literal[">", ">=", "<", "<="]


@dataclass(frozen=True)
class OfCurve(Measure):
    """A measure that reduces the curve of one metric to a number."""

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
        """The curve, which a record must hold."""
        return (Need("curve", self.metric),)

    @property
    def percent(self) -> bool:
        """True if the curve is the accuracy on held-out problems."""
        return self.metric == HELD_OUT_ACCURACY

    @property
    def unit(self) -> Unit:
        """The unit of the metric; a deviation of points is compared with that of the base arm."""
        return "other" if self.reduce is _fluctuation else unit_of(self.metric)

    def stand(self, record: Record, arm: str) -> tuple[float, float] | None:
        """Return the first and the last held-out accuracy; None for other curves."""
        points = curve_of(record, arm, self.metric)
        return (points[0][1], points[-1][1]) if self.metric == HELD_OUT_ACCURACY else None

    def read(self, record: Record, arm: str) -> float:
        """Return the number that the curve in the record of `arm` is reduced to."""
        return self.reduce(curve_of(record, arm, self.metric), **self.options)


@dataclass(frozen=True)
class ShareOfCurve(OfCurve):
    """A measure that is the share of a curve's points, 0 to 1, of which a relation holds."""

    @property
    def percent(self) -> bool:
        """False: a share is from 0 to 1."""
        return False

    @property
    def unit(self) -> Unit:
        """The unit "other"."""
        return "other"


@dataclass(frozen=True)
class AtBest(Measure):
    """A measure that is the value of one metric at the step where another is highest."""

    metric: str
    by: str

    def __str__(self) -> str:
        return f"best({self.metric}, by {self.by})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The two curves, which a record must hold."""
        return Need("curve", self.metric), Need("curve", self.by)

    @property
    def unit(self) -> Unit:
        """The unit of the metric that is read."""
        return unit_of(self.metric)

    def read(self, record: Record, arm: str) -> float:
        """Return the value at that step, or at the nearest step that was logged."""
        step, _ = max(curve_of(record, arm, self.by), key=lambda point: point[1])
        return nearest(curve_of(record, arm, self.metric), step)


@dataclass(frozen=True, eq=False)
class Distance(Side):
    """A side that is the mean absolute difference of the curves of two arms."""

    metric: str
    arms: tuple[str, str]

    def __str__(self) -> str:
        return f"distance({self.metric} of {' and '.join(self.arms)})"

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "runs"."""
        return frozenset({"runs"})

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """The curve, which the records of both arms must hold."""
        return tuple((arm, Need("curve", self.metric)) for arm in self.arms)

    @property
    def units(self) -> frozenset[Unit]:
        """The unit of the metric."""
        return frozenset((unit_of(self.metric),))

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the mean absolute difference over the steps that both arms logged, per seed.

        Raises:
            MissingMeasure: the arms have no logged step in common.
        """
        return [self._value(runs) for runs in cases]

    def _value(self, runs: Runs) -> float:
        first, second = (dict(curve_of(record_of(runs, a), a, self.metric)) for a in self.arms)
        steps = first.keys() & second.keys()
        if not steps:
            raise MissingMeasure(f"{self}: the two have no step in common")
        return _mean([abs(first[step] - second[step]) for step in sorted(steps)])


def distance(metric: str, one: str, other: str) -> Distance:
    """Return the mean absolute difference of two arms' curves, over the steps that both logged."""
    return Distance(metric, (one, other))


def at_step(metric: str, step: int) -> OfCurve:
    """Return the measure of the first point logged at a step or later; shorter runs have none."""
    return OfCurve(f"at_step({metric}, {step})", metric, partial(_at_step, step=step))


def early(metric: str, end: float = 1 / 3) -> OfCurve:
    """Return the measure of the mean of the points up to the fraction `end` of training.

    The first point always counts.
    """
    name = f"early({metric})" if end == 1 / 3 else f"early({metric}, to {end:g})"
    return OfCurve(name, metric, _early, {"end": end})


def late(metric: str, begin: float = 2 / 3) -> OfCurve:
    """Return the measure of the mean of the points after the fraction `begin` of training.

    All points count if `begin` is 0, and the last one always.
    """
    name = f"late({metric})" if begin == 2 / 3 else f"late({metric}, from {begin:g})"
    return OfCurve(name, metric, _late, {"begin": begin})


def middle(metric: str) -> OfCurve:
    """Return the measure of the mean of the points in the middle half of training.

    At the end a quantity of wrong answers can be that of few answers.
    """
    return OfCurve(f"middle({metric})", metric, _between, {"begin": 1 / 4, "end": 3 / 4})


def whole(metric: str) -> OfCurve:
    """Return the measure of the mean of all points: of two runs, the faster one has more.

    It uses every point, where the step of a first crossing depends on a single one.
    """
    return OfCurve(f"whole({metric})", metric, _late, {"begin": 0.0})


def final(metric: str) -> OfCurve:
    """Return the measure of the last point."""
    return OfCurve(f"final({metric})", metric, _final)


def best(metric: str, by: str) -> AtBest:
    """Return the measure of `metric` at the first step where the curve `by` is highest.

    If `by` is a curve of held-out problems, that is the checkpoint early stopping would keep.
    """
    return AtBest(metric, by)


def largest(metric: str) -> OfCurve:
    """Return the measure of the largest point."""
    return OfCurve(f"largest({metric})", metric, _largest)


def gain(metric: str, begin: float = 0.0, end: float = 1.0) -> OfCurve:
    """Return the measure "point at the fraction `end` of training minus point at `begin`"."""
    name = f"gain({metric}, {begin:g} to {end:g})"
    return OfCurve(name, metric, _gain, {"begin": begin, "end": end})


def fluctuation(metric: str, begin: float = 2 / 3) -> OfCurve:
    """Return the measure of the sample deviation of the points after the fraction `begin`."""
    name = f"fluctuation({metric})" if begin == 2 / 3 else f"fluctuation({metric}, from {begin:g})"
    return OfCurve(name, metric, _fluctuation, {"begin": begin})


def drawdown(metric: str) -> OfCurve:
    """Return the measure of the deepest fall from a point to a later one; 0 if it never falls."""
    return OfCurve(f"drawdown({metric})", metric, _drawdown)


def share_of_steps(metric: str, relation: Order, threshold: float, begin: float = 0.0) -> OfCurve:
    """Return the measure of the share of points, 0 to 1, of which a relation to a threshold holds.

    Args:
        metric: whose curve it is.
        relation: between a point and the threshold.
        threshold: the number that points are compared with.
        begin: the fraction of training after which points count.

    Raises:
        BadClaim: the relation is none of `Order`.
    """
    after = f", from {begin:g}" if begin else ""
    name = f"share_of_steps({metric} {relation} {threshold:g}{after})"
    if relation not in get_args(Order):
        raise BadClaim(f"{name}: expected one of {' '.join(get_args(Order))}")
    share = partial(_share, relation=relation, threshold=threshold)
    return ShareOfCurve(name, metric, share, {"begin": begin})


def curve_of(record: Record, arm: str, metric: str) -> Curve:
    """Return the logged points of a metric in the record of `arm`.

    Raises:
        MissingMeasure: none were logged; the starting model has no training to log.
    """
    points: Curve = () if arm == START else record["curves"].get(metric, ())
    if not points:
        raise missing(record, arm, f"curve {metric!r}")
    return points


def nearest(points: Curve, step: float) -> float:
    """Return the value of the point nearest to a step, the earlier of two."""
    return min(points, key=lambda point: abs(point[0] - step))[1]


def sample_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation with divisor n - 1; 0 for a single value."""
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


def _between(points: Curve, begin: float, end: float) -> float:
    length = points[-1][0]
    inside = [value for step, value in points if begin * length <= step <= end * length]
    return _mean(inside) if inside else nearest(points, (begin + end) / 2 * length)


def _final(points: Curve) -> float:
    return points[-1][1]


def _at_step(points: Curve, step: int) -> float:
    for logged_step, value in points:
        if logged_step >= step:
            return value
    raise MissingMeasure(f"a run of {points[-1][0]:g} steps has no step {step}")


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
