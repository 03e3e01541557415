"""Gates of a claim: what its runs must show before the interval of the effect is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal, TypeAlias

from core.claims.comparison import Comparison
from core.claims.curves import HELD_OUT_ACCURACY, late
from core.claims.measures import Measure, missing
from core.claims.needs import PREPARED, Record, Runs, Stand
from core.claims.outcomes import how_of

BelowGate: TypeAlias = Literal["inert", "unhealthy"]

DROP = 1.5  # points of accuracy below its start at which an arm counts as broken
REWARD = "reward"  # the curve that stands for accuracy where none is measured


@dataclass(frozen=True)
class AccuracyChange(Measure):
    """A measure of the accuracy at the end of training minus that before it, in points.

    The accuracy is that on held-out problems: the first point of the curve, and the mean of the
    points of the last third, as a single point of 300 problems has a standard error of 2.4 points.
    A run without that curve has the mean of its scores, and a run without either 100 times the mean
    reward: the first point, and the mean of the last third. An accuracy that begins below `DROP`
    cannot fall by it, so the next of these that can is read in its place.

    If a preparation made the rows, the scores come first: held-out problems are then those that the
    answers of the start have chosen, and any other policy is right less often on them.
    """

    def __str__(self) -> str:
        return "accuracy change"

    @property
    def percent(self) -> bool:
        """True: the change is in points."""
        return True

    def stand(self, record: Record, arm: str) -> tuple[float, float]:
        """Return the accuracy before training and at the end of it, in percent.

        Raises:
            MissingMeasure: the record has neither accuracy nor reward.
        """
        measured = accuracies(record, arm)
        return next((pair for pair in measured if pair[0] >= DROP), measured[0])

    def read(self, record: Record, arm: str) -> float:
        """Return the change of accuracy in points."""
        before, after = self.stand(record, arm)
        return after - before


def accuracies(record: Record, arm: str) -> list[tuple[float, float]]:
    """Return the accuracies before training and at the end of it that a record has, in percent.

    They are in the order in which they count, see `AccuracyChange`.

    Raises:
        MissingMeasure: the record has none of them.
    """
    held_out, scores = ends_of(record, arm, HELD_OUT_ACCURACY), scores_before_and_after(record)
    of_problems = (scores, held_out) if has_chosen_problems(record) else (held_out, scores)
    ends = (*of_problems, ends_of(record, arm, REWARD, 100.0))
    if measured := [pair for pair in ends if pair is not None]:
        return measured
    content = f"curve {HELD_OUT_ACCURACY!r}, score or reward to compare with its start"
    raise missing(record, arm, content)


def has_chosen_problems(record: Record) -> bool:
    """Return whether a preparation made the rows of a run, held-out ones too."""
    return PREPARED in record.get("data", {}).get("name", "")


def ends_of(
    record: Record, arm: str, metric: str, factor: float = 1.0
) -> tuple[float, float] | None:
    """Return the first point of a curve and the mean of its last third; None without the curve."""
    points = record["curves"].get(metric)
    return (factor * points[0][1], factor * late(metric).read(record, arm)) if points else None


def scores_before_and_after(record: Record) -> tuple[float, float] | None:
    """Return the mean scores of the starting model and the policy; None without such scores.

    Only the scores that both have are counted. A run that trains nothing is its own start.
    """
    scores = {(row["mirrors"], how_of(row)): row["value"] for row in record.get("scores", ())}
    if scores and record.get("train", {}).get("steps") == 0:
        return mean(scores.values()), mean(scores.values())
    start = {(row["mirrors"], how_of(row)): row["value"] for row in record.get("start_scores", ())}
    shared = [name for name in scores if name in start]
    if not shared:
        return None
    return mean(start[name] for name in shared), mean(scores[name] for name in shared)


@dataclass(frozen=True)
class Gate:
    """A condition on a claim's runs, and the verdict on the claim if they do not meet it.

    It must hold of the mean over the judged seeds.
    """

    below: BelowGate
    test: Comparison

    def check(self, cases: Sequence[Runs]) -> "CheckedGate":
        """Return the gate with its values over the seeds.

        Raises:
            MissingMeasure: a record lacks what the gate reads.
        """
        left, right = self.test.values(cases)
        return CheckedGate(self, left, right[0], self.test.left.stands(cases))


@dataclass(frozen=True)
class CheckedGate:
    """A gate with its bound, the value of each seed, and the percentages that it reads."""

    gate: Gate
    values: Sequence[float]
    bound: float
    stands: Sequence[Stand]

    @property
    def passes(self) -> bool:
        """True if the mean over the seeds is on the right side of the bound."""
        return self.gate.test.holds(mean(self.values), self.bound)

    @property
    def passing_seeds(self) -> int:
        """The number of seeds whose value is on the right side of the bound."""
        return sum(self.gate.test.holds(value, self.bound) for value in self.values)

    @property
    def seeds(self) -> str:
        """The number of seeds, or of a law's cases, that pass, in words."""
        cases = "seeds" if self.gate.test.kind == "runs" else "cases"
        return f"which {self.passing_seeds} of {len(self.values)} {cases} pass"

    @property
    def condition(self) -> str:
        """The gate in words: measure, arm, relation and bound."""
        return f"{self.gate.test.left} {self.gate.test.relation} {self.bound:g}"

    @property
    def reason(self) -> str:
        """The numbers by which the gate is missed, in words."""
        test = self.gate.test
        ends = "".join(f" ({stand.before:.1f} to {stand.after:.1f} %)" for stand in self.stands)
        expected = f"expected {test.relation} {self.bound:g}, {self.seeds}"
        return f"{test.left} is {mean(self.values):.3g}{ends}, {expected}"


def health(arm: str) -> Gate:
    """Return the gate that an arm does not end more than `DROP` points below its start."""
    return Gate("unhealthy", AccuracyChange().of(arm) >= -DROP)
