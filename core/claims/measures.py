"""Measures, each of which reads one number from a record and becomes a side by `of(arm)`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.claims.comparison import Side
from core.claims.margins import Unit
from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Record, Runs, Stand

START = "start"  # the starting model, which is scored in every run's record
VALIDATION = "held_out/"  # curves of held-out problems: the validation split


class Measure:
    """A number that is read from the record of one run."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """The curves, scores and so on that the record must hold; none by default."""
        return ()

    @property
    def percent(self) -> bool:
        """True if the number is a percentage or a difference of percentages."""
        return False

    @property
    def unit(self) -> Unit:
        """The unit of the number, from which the margin of equality follows."""
        return "accuracy" if self.percent else "other"

    def stand(self, record: Record, arm: str) -> tuple[float, float] | None:
        """Return the percentage that is measured, before training and after; None if it is none."""
        del record, arm
        return None

    def read(self, record: Record, arm: str) -> float:
        """Return the number from the record of a run of `arm`, or of any run for `start`."""
        raise NotImplementedError

    def of(self, arm: "str | Chosen") -> Side:
        """Return the side "this measure on an arm", or on the arm that `highest` picks."""
        return OfArm(self, arm)


class Chosen(Protocol):
    """A choice of one of several arms by the validation split."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that the choice is made from."""
        ...

    @property
    def by(self) -> Measure:
        """The measure that the choice is made by."""
        ...

    def pick(self, runs: Runs) -> str:
        """Return the arm that does best in one seed's records."""
        ...


@dataclass(frozen=True, eq=False)
class OfArm(Side):
    """A side that is a measure on an arm."""

    measure: Measure
    arm: str | Chosen

    def __post_init__(self) -> None:
        if not isinstance(self.arm, str) and any(is_validation(n) for n in self.measure.needs):
            raise BadClaim(f"{self}: picks an arm and measures it on the same held-out problems")

    def __str__(self) -> str:
        return f"{self.measure} of {self.arm}"

    @property
    def label(self) -> tuple[str, str | None]:
        """The text of the measure, and the arm."""
        return str(self.measure), str(self.arm)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "runs"."""
        return frozenset({"runs"})

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """Needs of the measure on the arm, or of the measure and the choice on each arm."""
        if isinstance(self.arm, str):
            return tuple((self.arm, need) for need in self.measure.needs)
        read = (*self.measure.needs, *self.arm.by.needs)
        return tuple((arm, need) for arm in self.arm.arms for need in read)

    @property
    def percent(self) -> bool:
        """True if the measure is a percentage."""
        return self.measure.percent

    @property
    def units(self) -> frozenset[Unit]:
        """The unit of the measure."""
        return frozenset((self.measure.unit,))

    def stands(self, cases: Sequence[Runs]) -> list[Stand]:
        """Return the measured percentage before and after training, its mean over the seeds.

        It is empty for the starting model and for a measure that is no percentage.
        """
        picked = [(runs, self._pick(runs)) for runs in cases]
        stands = [
            stand
            for runs, arm in picked
            if arm != START and (stand := self.measure.stand(record_of(runs, arm), arm)) is not None
        ]
        if not stands:
            return []
        before, after = (sum(column) / len(stands) for column in zip(*stands, strict=True))
        return [Stand(str(self), before, after)]

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the measure for each seed."""
        return [self._value(runs) for runs in cases]

    def _value(self, runs: Runs) -> float:
        arm = self._pick(runs)
        return self.measure.read(record_of(runs, arm), arm)

    def _pick(self, runs: Runs) -> str:
        return self.arm if isinstance(self.arm, str) else self.arm.pick(runs)


def record_of(runs: Runs, arm: str) -> Record:
    """Return the record of an arm; any record for `start`, as each scores the starting model."""
    return next(iter(runs.values())) if arm == START else runs[arm]


def is_validation(need: Need) -> bool:
    """Return whether a need is a curve of the held-out problems."""
    return need.kind == "curve" and need.name.startswith(VALIDATION)


def missing(record: Record, arm: str, content: str) -> MissingMeasure:
    """Return the error that a record of `arm` lacks the content that a measure reads."""
    return MissingMeasure(
        f"record {record.get('digest', '(unsaved)')} of arm {arm} has no {content}"
    )
