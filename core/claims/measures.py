"""What a claim compares: numbers read from a run's record, and exact sums that need no run.

A measure reads a record (a mapping, as stored) and gives one number per run; `of(arm)` makes it one
side of a claim. The arm `start` is the starting model, scored in every run's record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any, Protocol, TypeAlias

from eval.errors import ReproError

START = "start"

Record: TypeAlias = Mapping[str, Any]  # Any: a record's fields are JSON of several types
Curve: TypeAlias = Sequence[tuple[float, float]]


class MissingMeasure(ReproError, LookupError):
    """A record does not hold what a measure reads."""


class Measure(Protocol):
    """One number from one run."""

    def read(self, record: Record, arm: str) -> float:
        """The number, from the record of a run of `arm` (or of any run, for `start`)."""
        ...


@dataclass(frozen=True)
class Side:
    """A measure on an arm; an arm of None needs no run."""

    measure: "Measure | ExactVariance"
    arm: str | None

    def __str__(self) -> str:
        return f"{self.measure} of {self.arm}" if self.arm else str(self.measure)


class _OfArm:
    def of(self: Measure, arm: str) -> Side:
        """One side of a claim: the measure on `arm`."""
        return Side(self, arm)


@dataclass(frozen=True)
class Score(_OfArm):
    """Mean greedy accuracy in percent over benchmarks, by the names the paper uses.

    At a small scale each is read from the suite that stands for it (`mirrors` in the record).
    """

    benchmarks: tuple[str, ...]

    def __str__(self) -> str:
        return f"top1({', '.join(self.benchmarks)})"

    def read(self, record: Record, arm: str) -> float:
        """Mean of the top1 scores; the starting model's own for `start`."""
        key = "start_scores" if arm == START else "scores"
        rows = [s for s in record[key] if (s["metric"], s.get("mode", "cot")) == ("top1", "cot")]
        found = {s["mirrors"]: s["value"] for s in rows if "temperature" not in s}
        missing = [name for name in self.benchmarks if name not in found]
        if missing:
            raise MissingMeasure(f"record {_name(record)} has no {key} of {', '.join(missing)}")
        return sum(found[name] for name in self.benchmarks) / len(self.benchmarks)


@dataclass(frozen=True)
class Late(_OfArm):
    """Mean of a logged metric over the last third of training."""

    metric: str

    def __str__(self) -> str:
        return f"late({self.metric})"

    def read(self, record: Record, arm: str) -> float:
        """Mean of the points whose step lies in the last third."""
        points = _curve(record, self.metric, arm)
        begin = 2 / 3 * points[-1][0]
        late = [value for step, value in points if step > begin] or [points[-1][1]]
        return sum(late) / len(late)


@dataclass(frozen=True)
class Gain(_OfArm):
    """How much a logged metric rises from one fraction of training to another."""

    metric: str
    begin: float
    end: float

    def __str__(self) -> str:
        return f"gain({self.metric}, {self.begin:g} to {self.end:g})"

    def read(self, record: Record, arm: str) -> float:
        """Value nearest to `end` minus value nearest to `begin`, as fractions of the last step."""
        points = _curve(record, self.metric, arm)
        last = points[-1][0]

        def at(fraction: float) -> float:
            return min(points, key=lambda point: abs(point[0] - fraction * last))[1]

        return at(self.end) - at(self.begin)


@dataclass(frozen=True)
class GainAtK(_OfArm):
    """How much Maj@K or Pass@K (percent, at the largest K) rises over the starting model's."""

    vote: str
    benchmarks: tuple[str, ...]

    def __str__(self) -> str:
        return f"gain in {self.vote}@K({', '.join(self.benchmarks)})"

    def read(self, record: Record, arm: str) -> float:
        """Mean over the benchmarks of after minus before."""
        found = {curve["mirrors"]: curve for curve in record["sampling"].values()}
        missing = [name for name in self.benchmarks if name not in found]
        if missing:
            raise MissingMeasure(
                f"record {_name(record)} of arm {arm} has no samples of {', '.join(missing)}"
            )
        curves = [found[name] for name in self.benchmarks]
        gains = [c["after"][self.vote][-1] - c["before"][self.vote][-1] for c in curves]
        return sum(gains) / len(gains)


# Pairs (policy, reference) of nearby categorical distributions, from nearly equal to a factor of 2.
POLICIES: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = (
    ((0.50, 0.30, 0.20), (0.48, 0.31, 0.21)),
    ((0.50, 0.30, 0.20), (0.45, 0.33, 0.22)),
    ((0.70, 0.20, 0.10), (0.60, 0.25, 0.15)),
    ((0.25, 0.25, 0.25, 0.25), (0.30, 0.20, 0.30, 0.20)),
    ((0.90, 0.05, 0.03, 0.02), (0.80, 0.10, 0.06, 0.04)),
)
ESTIMATORS = {"k1": lambda u: -log(u), "k3": lambda u: u - log(u) - 1}


@dataclass(frozen=True)
class ExactVariance:
    """Variance of a KL estimator under the policy, as exact sums over categorical policies.

    u = p_ref / p, k1 = -log u, k3 = u - log u - 1; arXiv 2402.03300 eq. 4. With `sound`, the value
    is infinite where the estimator is negative somewhere or its mean is not KL(p || p_ref).
    """

    estimator: str
    sound: bool = False

    def __str__(self) -> str:
        return f"variance({self.estimator})"

    def values(self) -> list[float]:
        """One variance for each pair of `POLICIES`."""
        return [self._variance(policy, reference) for policy, reference in POLICIES]

    def _variance(self, policy: Sequence[float], reference: Sequence[float]) -> float:
        pairs = list(zip(policy, reference, strict=True))
        estimates = [(p, ESTIMATORS[self.estimator](r / p)) for p, r in pairs]
        mean = sum(p * value for p, value in estimates)
        kl = sum(p * log(p / r) for p, r in pairs)
        if self.sound and (min(value for _, value in estimates) < 0 or abs(mean - kl) > 1e-12):
            return inf
        return sum(p * (value - mean) ** 2 for p, value in estimates)


def score(*benchmarks: str) -> Score:
    """Mean greedy accuracy over `benchmarks`."""
    return Score(benchmarks)


def late(metric: str) -> Late:
    """Mean of `metric` over the last third of training."""
    return Late(metric)


def gain(metric: str, begin: float = 0.0, end: float = 1.0) -> Gain:
    """Rise of `metric` between two fractions of training."""
    return Gain(metric, begin, end)


def gain_at_k(vote: str, *benchmarks: str) -> GainAtK:
    """Rise of `maj` or `pass` at the largest K over the starting model."""
    return GainAtK(vote, benchmarks)


def exact_variance(estimator: str, *, sound: bool = False) -> Side:
    """The exact variance of a KL estimator: a side that needs no run."""
    return Side(ExactVariance(estimator, sound), None)


def _curve(record: Record, metric: str, arm: str) -> Curve:
    points: Curve = record["curves"].get(metric, ())
    if not points:
        raise MissingMeasure(f"record {_name(record)} of arm {arm} has no curve {metric!r}")
    return points


def _name(record: Record) -> str:
    return str(record.get("digest", "(unsaved)"))
