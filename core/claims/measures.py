"""Measures: each reads one number from the record of a run, and becomes a side by `of(arm)`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.claims.comparison import Side
from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Record, Runs, Stand

START = "start"  # the starting model, which is scored in every run's record
VALIDATION = "held_out/"  # curves of held-out problems: the validation split


class Measure:
    """One number from one run; `needs` is what the record must hold for it."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the record must hold; nothing, unless a measure says otherwise."""
        return ()

    @property
    def percent(self) -> bool:
        """Whether the number is a percentage, or a difference of two."""
        return False

    def stand(self, record: Record, arm: str) -> tuple[float, float] | None:
        """The percentage that it is about, before training and after; None where it is of none."""
        del record, arm
        return None

    def read(self, record: Record, arm: str) -> float:
        """The number, from the record of a run of `arm` (or of any run, for `start`)."""
        raise NotImplementedError

    def of(self, arm: "str | Chosen") -> Side:
        """One side of a claim: the measure on an arm, or on the arm that `highest` picks."""
        return OfArm(self, arm)


class Chosen(Protocol):
    """One of several arms, picked by the validation split."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms it picks from."""
        ...

    @property
    def by(self) -> Measure:
        """The measure that it picks by."""
        ...

    def pick(self, runs: Runs) -> str:
        """The arm that does best in one seed's records."""
        ...


@dataclass(frozen=True, eq=False)
class OfArm(Side):
    """A measure on an arm."""

    measure: Measure
    arm: str | Chosen

    def __post_init__(self) -> None:
        if not isinstance(self.arm, str) and any(is_validation(n) for n in self.measure.needs):
            raise BadClaim(f"{self}: picks an arm and measures it on the same held-out problems")

    def __str__(self) -> str:
        return f"{self.measure} of {self.arm}"

    @property
    def label(self) -> tuple[str, str | None]:
        """The measure and the arm."""
        return str(self.measure), str(self.arm)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Runs."""
        return frozenset({"runs"})

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """What the measure reads of the arm; of every arm that is picked from, the choice too."""
        if isinstance(self.arm, str):
            return tuple((self.arm, need) for need in self.measure.needs)
        read = (*self.measure.needs, *self.arm.by.needs)
        return tuple((arm, need) for arm in self.arm.arms for need in read)

    @property
    def percent(self) -> bool:
        """As the measure."""
        return self.measure.percent

    def stands(self, cases: Sequence[Runs]) -> list[Stand]:
        """Of an arm that was trained: where its measure stood before, and stands after."""
        picked = [(runs, self._pick(runs)) for runs in cases]
        found = [
            stand
            for runs, arm in picked
            if arm != START and (stand := self.measure.stand(record_of(runs, arm), arm)) is not None
        ]
        if not found:
            return []
        before, after = (sum(column) / len(found) for column in zip(*found, strict=True))
        return [Stand(str(self), before, after)]

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """The measure of each seed's record."""
        return [self._value(runs) for runs in cases]

    def _value(self, runs: Runs) -> float:
        arm = self._pick(runs)
        return self.measure.read(record_of(runs, arm), arm)

    def _pick(self, runs: Runs) -> str:
        return self.arm if isinstance(self.arm, str) else self.arm.pick(runs)


def record_of(runs: Runs, arm: str) -> Record:
    """The record of an arm; the starting model is scored in the record of any."""
    return next(iter(runs.values())) if arm == START else runs[arm]


def is_validation(need: Need) -> bool:
    """Whether it is read from the held-out problems."""
    return need.kind == "curve" and need.name.startswith(VALIDATION)


def missing(record: Record, arm: str, what: str) -> MissingMeasure:
    """The error of a record that lacks what a measure reads."""
    return MissingMeasure(f"record {record.get('digest', '(unsaved)')} of arm {arm} has no {what}")
