"""Where a metric reaches a threshold: how long it takes, and what another metric is there.

A run that ends before is censored: all that is known is that it takes longer than the run. Such a
value is never used in a comparison; the claim has no verdict from these runs and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.claims.comparison import Side, aligned, as_side
from core.claims.curves import curve_of, nearest
from core.claims.measures import record_of
from core.claims.needs import Kind, MissingMeasure, Need, Runs


class Censored(MissingMeasure):
    """A run ended before the threshold was reached."""


@dataclass(frozen=True)
class Reaching:
    """A metric, a threshold to reach, and the metric that is read there; None for the step."""

    name: str
    metric: str
    threshold: Side
    read: str | None

    def __str__(self) -> str:
        return f"{self.name}({self.metric} >= {self.threshold})"

    def of(self, arm: str) -> "Reached":
        """One side of a claim: what is read of an arm."""
        return Reached(self, arm)


@dataclass(frozen=True, eq=False)
class Reached(Side):
    """What is read where an arm reaches a threshold, which may be measured on another arm."""

    goal: Reaching
    arm: str

    def __str__(self) -> str:
        return f"{self.goal} of {self.arm}"

    @property
    def label(self) -> tuple[str, str | None]:
        """The goal and the arm."""
        return str(self.goal), self.arm

    @property
    def kinds(self) -> frozenset[Kind]:
        """Runs, and what the threshold is."""
        return self.goal.threshold.kinds | frozenset[Kind](("runs",))

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """The curve, that of what is read there, and what the threshold reads."""
        names = [name for name in (self.goal.metric, self.goal.read) if name]
        return (*((self.arm, Need("curve", name)) for name in names), *self.goal.threshold.needs)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """What is read of each seed.

        Raises:
            Censored: a seed's run ends before.
        """
        thresholds = aligned(self, self.goal.threshold.values(cases), [0.0] * len(cases))[0]
        return [self._value(runs, at) for runs, at in zip(cases, thresholds, strict=True)]

    def _value(self, runs: Runs, threshold: float) -> float:
        record, goal = record_of(runs, self.arm), self.goal
        points = curve_of(record, self.arm, goal.metric)
        reached = next((step for step, value in points if value >= threshold), None)
        if reached is None:
            raise Censored(
                f"{self} is not reached in the {points[-1][0]:g} steps of record "
                f"{record.get('digest', '(unsaved)')}: its value is not known"
            )
        if goal.read is None:
            return reached
        return nearest(curve_of(record, self.arm, goal.read), reached)


def steps_to(metric: str, threshold: Side | float) -> Reaching:
    """The first logged step at which `metric` is at least `threshold`."""
    return Reaching("steps_to", metric, as_side(threshold), None)


def tokens_to(metric: str, threshold: Side | float) -> Reaching:
    """The tokens trained on up to that step: `num_tokens` there."""
    return Reaching("tokens_to", metric, as_side(threshold), "num_tokens")


def completions_to(metric: str, threshold: Side | float) -> Reaching:
    """The completions sampled up to that step: `num_completions` there."""
    return Reaching("completions_to", metric, as_side(threshold), "num_completions")


def when(read: str, metric: str, threshold: Side | float) -> Reaching:
    """The value of another metric at the first logged step at which `metric` is that high.

    With `least(final(m).of(a), final(m).of(b))` as threshold, two arms are compared where they
    have come equally far.
    """
    return Reaching(f"{read} when", metric, as_side(threshold), read)
