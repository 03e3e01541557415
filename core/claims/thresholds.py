"""Sides at the step where a metric reaches a threshold: that step, or another metric there.

Or the mean of another metric over the values of the first, up to the threshold.

A run that ends before the threshold is censored: the metric takes longer than the run. A comparison
never uses such a value; the claim stays undecided for these runs, with that reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf

from core.claims.comparison import Side, as_side, broadcast_values
from core.claims.curves import Curve, curve_of, nearest
from core.claims.margins import Unit, unit_of
from core.claims.measures import record_of
from core.claims.needs import Kind, MissingMeasure, Need, Runs


class Censored(MissingMeasure):
    """A run ended before the threshold was reached."""


@dataclass(frozen=True)
class Reaching:
    """A metric, the threshold to reach, and the metric to `read`; None for the step.

    With `is_mean` that metric is averaged over the values up to the threshold.
    """

    name: str
    metric: str
    threshold: Side
    read: str | None
    is_mean: bool = False

    def __str__(self) -> str:
        return f"{self.name}({self.metric} >= {self.threshold})"

    def of(self, arm: str) -> "Reached":
        """Return the side of a claim that reads this on an arm."""
        return Reached(self, arm)


@dataclass(frozen=True, eq=False)
class Reached(Side):
    """A side that is read where an arm reaches a threshold, possibly measured on another arm."""

    goal: Reaching
    arm: str

    def __str__(self) -> str:
        return f"{self.goal} of {self.arm}"

    @property
    def label(self) -> tuple[str, str | None]:
        """The text of the goal, and the arm."""
        return str(self.goal), self.arm

    @property
    def units(self) -> frozenset[Unit]:
        """The unit of what is read there."""
        return frozenset((unit_of(self.goal.read or "step"),))

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "runs", and the kinds of the threshold."""
        return self.goal.threshold.kinds | frozenset[Kind](("runs",))

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """The curves of the metric and of what is read there, and the needs of the threshold."""
        names = [name for name in (self.goal.metric, self.goal.read) if name]
        return (*((self.arm, Need("curve", name)) for name in names), *self.goal.threshold.needs)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the step, or the value that is read there, for each seed.

        Raises:
            Censored: a seed's run ends before the threshold is reached.
        """
        thresholds = broadcast_values(self, self.goal.threshold.values(cases), [0.0] * len(cases))[
            0
        ]
        return [
            self._value(runs, threshold) for runs, threshold in zip(cases, thresholds, strict=True)
        ]

    def _value(self, runs: Runs, threshold: float) -> float:
        record, goal = record_of(runs, self.arm), self.goal
        points = curve_of(record, self.arm, goal.metric)
        reached_step = next((step for step, value in points if value >= threshold), None)
        if reached_step is None:
            raise Censored(
                f"{self} is not reached in the {points[-1][0]:g} steps of record "
                f"{record.get('digest', '(unsaved)')}: its value is not known"
            )
        if goal.read is None:
            return reached_step
        read = curve_of(record, self.arm, goal.read)
        return mean_of(read, points, threshold) if goal.is_mean else nearest(read, reached_step)


def steps_to(metric: str, threshold: Side | float) -> Reaching:
    """Return the goal that reads the first logged step at which `metric` >= `threshold`."""
    return Reaching("steps_to", metric, as_side(threshold), None)


def tokens_to(metric: str, threshold: Side | float) -> Reaching:
    """Return the goal that reads `num_tokens`, the tokens trained on, at that step."""
    return Reaching("tokens_to", metric, as_side(threshold), "num_tokens")


def completions_to(metric: str, threshold: Side | float) -> Reaching:
    """Return the goal that reads `num_completions`, the sampled completions, at that step."""
    return Reaching("completions_to", metric, as_side(threshold), "num_completions")


def when(read: str, metric: str, threshold: Side | float) -> Reaching:
    """Return the goal that reads another metric at the first step where `metric` >= `threshold`.

    With `least(final(m).of(a), final(m).of(b))` as the threshold, two arms are compared at the
    point where both have made equal progress.
    """
    return Reaching(f"{read} when", metric, as_side(threshold), read)


def mean_along(read: str, metric: str, threshold: Side | float) -> Reaching:
    """Return the goal that reads the mean of another metric over the values of `metric`.

    From its first value to the threshold, as in the mean reward over divergences that two arms both
    reach, see `mean_of`.
    """
    return Reaching(f"mean {read} along", metric, as_side(threshold), read, is_mean=True)


def mean_of(read: Curve, points: Curve, threshold: float) -> float:
    """Return the mean of one curve over the values of another, from its first to the threshold.

    Both are linear between the points at which the other is larger than ever before.
    """
    begin, largest = points[0][1], accumulate((value for _, value in points), max)
    rising = [
        (value, nearest(read, step))
        for (step, value), before in zip(points, [-inf, *largest], strict=False)
        if value > before
    ]
    area = 0.0
    for (start, low), (end, high) in pairwise(rising):
        if start < threshold:
            stop = min(end, threshold)
            at_stop = low + (high - low) * (stop - start) / (end - start)
            area += (stop - start) * (low + at_stop) / 2
    return area / (threshold - begin) if threshold > begin else rising[0][1]
