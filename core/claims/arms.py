"""Sides over several arms or several seeds: spreads, deviations, and the best of several arms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.claims.comparison import Side, aligned
from core.claims.curves import sample_deviation
from core.claims.measures import Measure, is_validation, record_of
from core.claims.needs import BadClaim, MissingMeasure, Runs

OVER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "least": min,
    "spread": lambda values: max(values) - min(values),
}


@dataclass(frozen=True, eq=False)
class OverSides(Side):
    """One value from several sides, case by case."""

    name: str
    sides: tuple[Side, ...]

    def __post_init__(self) -> None:
        if len(self.sides) < 2:
            raise BadClaim(f"{self}: expected at least two sides")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.sides))})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The sides."""
        return self.sides

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """One value for each case."""
        columns = aligned(self, *(side.values(cases) for side in self.sides))
        return [OVER[self.name](row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Deviation(Side):
    """The standard deviation of a side over its seeds."""

    side: Side

    def __str__(self) -> str:
        return f"deviation({self.side})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The side."""
        return (self.side,)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Jackknife values, n s - (n - 1) s_without, so that every seed has one.

        Their mean is the estimate of the deviation, their spread is its uncertainty.

        Raises:
            MissingMeasure: there are fewer than three seeds.
        """
        found = self.side.values(cases)
        n = len(found)
        if n < 3:
            raise MissingMeasure(f"{self} needs at least 3 seeds, there are {n}")
        whole = sample_deviation(found)
        without = [sample_deviation([*found[:i], *found[i + 1 :]]) for i in range(n)]
        return [n * whole - (n - 1) * one for one in without]


@dataclass(frozen=True)
class Choice:
    """The arm that does best by a measure of the validation split; each seed picks its own."""

    order: str
    by: Measure
    arms: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.arms) < 2:
            raise BadClaim(f"{self}: expected at least two arms to pick from")
        if not self.by.needs or not all(map(is_validation, self.by.needs)):
            raise BadClaim(f"{self}: picks by no curve of held-out problems (held_out/...)")

    def __str__(self) -> str:
        return f"{self.order}({self.by}: {', '.join(self.arms)})"

    def pick(self, runs: Runs) -> str:
        """The best arm in one seed's records, the first of equals."""
        extreme = max if self.order == "highest" else min
        return extreme(self.arms, key=lambda arm: self.by.read(record_of(runs, arm), arm))


def spread(measure: Measure, *arms: str) -> Side:
    """The largest value over the arms minus the smallest."""
    return OverSides("spread", tuple(measure.of(arm) for arm in arms))


def least(*sides: Side) -> Side:
    """The smallest of several sides; `least(a - b, c - d) > 0` says that a > b and c > d."""
    return OverSides("least", sides)


def deviation(side: Side) -> Side:
    """The standard deviation of a side over its seeds."""
    return Deviation(side)


def highest(by: Measure, *arms: str) -> Choice:
    """The arm with the highest `by`, a measure of held-out problems."""
    return Choice("highest", by, arms)


def lowest(by: Measure, *arms: str) -> Choice:
    """The arm with the lowest `by`, a measure of held-out problems."""
    return Choice("lowest", by, arms)
