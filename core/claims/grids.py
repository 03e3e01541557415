"""Sides over a grid of arms that differ in one setting: whether the best is inside, logarithms."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2 as log_2

from core.claims.arms import Choice, Setting
from core.claims.comparison import Side, as_side, broadcast_values
from core.claims.margins import Unit
from core.claims.needs import BadClaim, MissingMeasure, Runs


@dataclass(frozen=True, eq=False)
class Logarithm(Side):
    """A side that is the logarithm to base 2 of another side, case by case."""

    side: Side

    def __str__(self) -> str:
        return f"log2({self.side})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The side whose logarithm this is."""
        return (self.side,)

    @property
    def percent(self) -> bool:
        """False: a logarithm is no percentage."""
        return False

    @property
    def units(self) -> frozenset[Unit]:
        """The unit "other"."""
        return frozenset[Unit](("other",))

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the logarithm for each case.

        Raises:
            MissingMeasure: a value is not above 0.
        """
        values = self.side.values(cases)
        if min(values) <= 0:
            raise MissingMeasure(f"{self}: a value is {min(values):g}, expected above 0")
        return [log_2(value) for value in values]


@dataclass(frozen=True, eq=False)
class Inside(Side):
    """A side that is 1 if a setting of the chosen arm is at neither end of its grid, else 0.

    The grid is the values of the setting over the arms of the choice.
    """

    name: str
    choice: Choice

    def __post_init__(self) -> None:
        if len(self.choice.arms) < 3:
            raise BadClaim(f"{self}: expected at least three arms, so that one can be inside")

    def __str__(self) -> str:
        return f"inside({self.name}, {self.choice})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The setting of the chosen arm, and of each arm of the grid."""
        measure = Setting(self.name)
        return (measure.of(self.choice), *map(measure.of, self.choice.arms))

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return 1 or 0 for each seed."""
        columns = broadcast_values(self, *(part.values(cases) for part in self.parts))
        rows = zip(*columns, strict=True)
        return [float(min(grid) < chosen < max(grid)) for chosen, *grid in rows]


def log2(side: Side | float) -> Side:
    """Return the logarithm of a side to base 2: on a grid of factor 2, the number of steps."""
    return Logarithm(as_side(side))


def inside(name: str, choice: Choice) -> Side:
    """Return whether the chosen arm's setting is neither the least nor the largest, as 1 or 0.

    A best value at the end of a grid is only the best that was tried; the mean over seeds of this
    side bounds how often that happens, as in `acts=inside("learning_rate", best) >= 0.75`.
    """
    return Inside(name, choice)
