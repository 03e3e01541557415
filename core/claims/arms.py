"""Sides over several arms or several seeds: spreads, deviations, and the best of several arms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from core.claims.comparison import Relation, Side, broadcast_values
from core.claims.curves import sample_deviation
from core.claims.margins import Unit
from core.claims.measures import Chosen, Measure, is_validation, missing, record_of
from core.claims.needs import BadClaim, MissingMeasure, Need, Record, Runs

DEVIATION_SEEDS = 16  # fewer say too little about a variance over seeds

OVER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "least": min,
    "most": max,
    "spread": lambda values: max(values) - min(values),
}


@dataclass(frozen=True, eq=False)
class OverSides(Side):
    """A side that is an extreme or the spread of several sides, case by case."""

    name: str
    sides: tuple[Side, ...]

    def __post_init__(self) -> None:
        if len(self.sides) < 2:
            raise BadClaim(f"{self}: expected at least two sides")

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.sides))})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The sides that it is computed from."""
        return self.sides

    @property
    def extreme_of(self) -> int:
        """The number of sides."""
        return len(self.sides)

    def all_of(self, relation: Relation) -> tuple[Side, ...]:
        """Return the sides that must all be in a relation to a value for this one to be in it.

        The least is above a value if all sides are, the most below it if all sides are; a spread is
        below it if all pairwise differences are.
        """
        match self.name, relation:
            case ("least", ">" | ">=") | ("most", "<" | "<="):
                return self.sides
            case "spread", "<" | "<=":
                return tuple(a - b for a, b in permutations(self.sides, 2))
            case _:
                return (self,)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the least, the most or the spread of the sides, one value per case."""
        columns = broadcast_values(self, *(side.values(cases) for side in self.sides))
        return [OVER[self.name](row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Deviation(Side):
    """A side that is the standard deviation of another side over its seeds."""

    side: Side

    def __str__(self) -> str:
        return f"deviation({self.side})"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The side whose deviation this is."""
        return (self.side,)

    @property
    def units(self) -> frozenset[Unit]:
        """The unit "other": a deviation is compared with that of the base arm."""
        return frozenset[Unit](("other",))

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the jackknife pseudo-value of each seed, n s - (n - 1) s_without.

        The mean of the pseudo-values estimates the deviation, their spread its uncertainty.

        Raises:
            MissingMeasure: there are fewer than three seeds.
        """
        values = self.side.values(cases)
        n = len(values)
        if n < 3:
            raise MissingMeasure(f"{self} needs at least 3 seeds, there are {n}")
        full_deviation = sample_deviation(values)
        reduced = [sample_deviation([*values[:i], *values[i + 1 :]]) for i in range(n)]
        return [n * full_deviation - (n - 1) * deviation for deviation in reduced]


@dataclass(frozen=True)
class Setting(Measure):
    """A measure that reads a numeric setting of a training."""

    name: str

    def __str__(self) -> str:
        return f"setting({self.name})"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The setting, which a record must hold."""
        return (Need("setting", self.name),)

    def read(self, record: Record, arm: str) -> float:
        """Return the value of the setting in the record of `arm`."""
        value = record["config"].get(self.name, {}).get("value")
        if not isinstance(value, int | float):
            raise missing(record, arm, f"setting {self.name!r} that is a number")
        return float(value)


@dataclass(frozen=True, eq=False)
class RankCorrelation(Side):
    """Spearman's correlation of two measures over arms, as a side; ties have their mean rank."""

    x: tuple[Side, ...]
    y: tuple[Side, ...]

    def __post_init__(self) -> None:
        if len(self.x) < 3:
            raise BadClaim(f"{self}: expected at least three arms")

    def __str__(self) -> str:
        sides = (", ".join(map(str, side)) for side in (self.x, self.y))
        return f"rank_correlation({'; '.join(sides)})"

    @property
    def percent(self) -> bool:
        """False: a correlation is no percentage."""
        return False

    @property
    def units(self) -> frozenset[Unit]:
        """The unit "other"."""
        return frozenset[Unit](("other",))

    @property
    def parts(self) -> tuple[Side, ...]:
        """The sides of both measures on all arms."""
        return (*self.x, *self.y)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return one correlation for each seed, -1 to 1.

        Raises:
            MissingMeasure: all arms have one value.
        """
        columns = broadcast_values(self, *(side.values(cases) for side in self.parts))
        rows, n = list(zip(*columns, strict=True)), len(self.x)
        return [self._correlation(ranks(row[:n]), ranks(row[n:])) for row in rows]

    def _correlation(self, x: Sequence[float], y: Sequence[float]) -> float:
        middle = (len(x) + 1) / 2
        products = [(a - middle) * (b - middle) for a, b in zip(x, y, strict=True)]
        squares = [sum((rank - middle) ** 2 for rank in ranks) for ranks in (x, y)]
        if not all(squares):
            raise MissingMeasure(f"{self}: all arms have the same value, so there is no order")
        return sum(products) / (squares[0] * squares[1]) ** 0.5


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1; equal values have the mean of their ranks."""
    return [
        sum(v < value for v in values) + (1 + sum(v == value for v in values)) / 2
        for value in values
    ]


@dataclass(frozen=True)
class Choice:
    """A choice of the best of several arms by a measure of the validation split, made per seed."""

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
        """Return the best arm in one seed's records, the first of equals."""
        extreme = max if self.order == "highest" else min
        return extreme(self.arms, key=lambda arm: self.by.read(record_of(runs, arm), arm))


def reads_deviation(side: Side) -> bool:
    """Return whether a side is, or is computed from, a deviation over seeds."""
    return isinstance(side, Deviation) or any(map(reads_deviation, side.parts))


def spread(measure: Measure, *arms: str | Chosen) -> Side:
    """Return the side "largest value over the arms minus the smallest"."""
    return OverSides("spread", tuple(measure.of(arm) for arm in arms))


def least(*sides: Side) -> Side:
    """Return the smallest of several sides; `least(a - b, c - d) > 0` says a > b and c > d."""
    return OverSides("least", sides)


def most(*sides: Side) -> Side:
    """Return the largest of several sides, such as the best of several ways of decoding."""
    return OverSides("most", sides)


def setting(name: str) -> Setting:
    """Return the measure of a numeric setting; on a `highest` choice, that of the chosen arm."""
    return Setting(name)


def rank_correlation(x: Measure, y: Measure, *arms: str) -> Side:
    """Return Spearman's correlation of two measures over arms; 1 if they order the arms alike."""
    return RankCorrelation(tuple(x.of(arm) for arm in arms), tuple(y.of(arm) for arm in arms))


def deviation(side: Side) -> Side:
    """Return the standard deviation of a side over its seeds, of which a claim needs 16."""
    return Deviation(side)


def highest(by: Measure, *arms: str) -> Choice:
    """Return the choice of the arm with the highest `by`, a measure of held-out problems."""
    return Choice("highest", by, arms)


def lowest(by: Measure, *arms: str) -> Choice:
    """Return the choice of the arm with the lowest `by`, a measure of held-out problems."""
    return Choice("lowest", by, arms)
