"""Sides of a claim, arithmetic on them, and the comparison of two of them.

A side has one value per case. The kind of a side says what a case is: the records of one seed
(`runs`), one seed (`simulated`), or one case of a law (`exact`). A number has no kind, and the same
value in every case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.claims.margins import Unit, equality_margin
from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Runs, Stand

Relation: TypeAlias = Literal[">", ">=", "<", "<=", "==", "~="]

RELATIONS: Mapping[Relation, Callable[[float, float, float], bool]] = {
    ">": lambda left, right, margin: left > right + margin,
    ">=": lambda left, right, margin: left >= right - margin,
    "<": lambda left, right, margin: left < right - margin,
    "<=": lambda left, right, margin: left <= right + margin,
    "==": lambda left, right, _: left == right,
    "~=": lambda left, right, margin: abs(left - right) < margin,
}
TURNED: Mapping[Relation, Relation] = {
    ">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "~=": "~="
}  # fmt: skip


class Side:
    """A side of a comparison, which may be computed from other sides, its `parts`."""

    __hash__ = object.__hash__

    @property
    def parts(self) -> "tuple[Side, ...]":
        """The sides that this one is computed from."""
        return ()

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of its cases; empty for a number."""
        return frozenset(kind for part in self.parts for kind in part.kinds)

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """Pairs of an arm, or `start`, and what its record must hold."""
        return tuple(dict.fromkeys(need for part in self.parts for need in part.needs))

    @property
    def label(self) -> tuple[str, str | None]:
        """The text of the side, and its arm; a side of several arms has None."""
        return str(self), None

    @property
    def percent(self) -> bool:
        """True if its values are percentages or differences of percentages."""
        return bool(self.parts) and all(part.percent for part in self.parts)

    @property
    def units(self) -> frozenset[Unit]:
        """The units of the values that it is computed from; empty for a number."""
        return frozenset(unit for part in self.parts for unit in part.units)

    @property
    def extreme_of(self) -> int:
        """The number of values it is the least, largest or spread of; 0 if it is no extreme."""
        return 0

    def all_of(self, relation: Relation) -> "tuple[Side, ...]":
        """Return the sides that must all be in a relation to a value for this one to be in it."""
        del relation
        return (self,)

    def stands(self, cases: Sequence[Runs]) -> "list[Stand]":
        """Return the percentages that this side reads, before training and after it."""
        return [stand for part in self.parts for stand in part.stands(cases)]

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return one value per case, or a single one if it is the same in all cases."""
        raise NotImplementedError

    def __add__(self, other: "Side | float") -> "Side":
        return Combined("+", self, as_side(other))

    def __sub__(self, other: "Side | float") -> "Side":
        return Combined("-", self, as_side(other))

    def __truediv__(self, other: "Side | float") -> "Side":
        return Combined("/", self, as_side(other))

    def __radd__(self, other: float) -> "Side":
        return Combined("+", as_side(other), self)

    def __rsub__(self, other: float) -> "Side":
        return Combined("-", as_side(other), self)

    def __rtruediv__(self, other: float) -> "Side":
        return Combined("/", as_side(other), self)

    def __abs__(self) -> "Side":
        return Size(self)

    def __gt__(self, other: "Side | float") -> "Comparison":
        return Comparison(self, ">", as_side(other))

    def __ge__(self, other: "Side | float") -> "Comparison":
        return Comparison(self, ">=", as_side(other))

    def __lt__(self, other: "Side | float") -> "Comparison":
        return Comparison(self, "<", as_side(other))

    def __le__(self, other: "Side | float") -> "Comparison":
        return Comparison(self, "<=", as_side(other))

    def __eq__(self, other: object) -> "Comparison":  # type: ignore[override]  # == is a relation
        return Comparison(self, "==", as_side(other))

    def __ne__(self, other: object) -> bool:
        raise BadClaim(f"{self} != {other}: no claim says so; expected >, >=, <, <=, == or about")

    def __bool__(self) -> bool:
        raise BadClaim(f"{self} is a side and no truth value: a claim compares two sides")

    def about(self, other: "Side | float", *, within: float) -> "Comparison":
        """Return the comparison "the two sides differ by less than `within`", an equivalence."""
        return Comparison(self, "~=", as_side(other), within)


@dataclass(frozen=True, eq=False)
class Number(Side):
    """A side that is a constant."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"

    @property
    def percent(self) -> bool:
        """True: a constant has the unit of the side it is compared with."""
        return True

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the constant as a single value."""
        del cases
        return [self.value]


OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "/": lambda left, right: left / right,
}


@dataclass(frozen=True, eq=False)
class Combined(Side):
    """A side that is a sum, difference or ratio of two sides, case by case."""

    operator: str
    left: Side
    right: Side

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"

    @property
    def percent(self) -> bool:
        """True for a sum or difference of percentages; a ratio is no percentage."""
        return self.operator != "/" and super().percent

    @property
    def units(self) -> frozenset[Unit]:
        """The units of both sides; a ratio has another."""
        return frozenset[Unit](("other",)) if self.operator == "/" else super().units

    @property
    def parts(self) -> tuple[Side, ...]:
        """The two sides that are combined."""
        return self.left, self.right

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the result of the operation for each case.

        Raises:
            MissingMeasure: the right side of a ratio is zero in some case.
        """
        pairs = zip(
            *broadcast_values(self, *(part.values(cases) for part in self.parts)), strict=True
        )
        try:
            return [OPERATORS[self.operator](a, b) for a, b in pairs]
        except ZeroDivisionError:
            raise MissingMeasure(f"{self} divides by zero") from None


@dataclass(frozen=True, eq=False)
class Size(Side):
    """A side that is the absolute value of another side, case by case."""

    side: Side

    def __str__(self) -> str:
        return f"|{self.side}|"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The side whose absolute value this is."""
        return (self.side,)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the absolute value for each case."""
        return [abs(value) for value in self.side.values(cases)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A relation that a claim asserts between two sides.

    With a margin, `>` and `<` must hold by more than the margin, `>=` and `<=` may fail by it, and
    `~=` means that the sides differ by less. A comparison that is neither held nor refuted is a tie
    if the sides are shown to differ by less than `equal`.

    Raises:
        BadClaim: sides of different kinds, two numbers, `==` on values that have noise or with a
            margin, `~=` without one, or an extreme of values that have noise where `each` has one.
    """

    left: Side
    relation: Relation
    right: Side
    margin: float = 0.0

    def __post_init__(self) -> None:
        if len(self._kinds) != 1:
            kinds = " and ".join(sorted(self._kinds)) or "numbers"
            raise BadClaim(f"{self}: compares {kinds}; expected runs, simulations or laws alone")
        self._check_margin()
        self._check_extremes()

    def _check_margin(self) -> None:
        if self.relation == "==" and self.kind != "exact":
            raise BadClaim(
                f"{self}: == is for laws, which are exact; use .about(other, within=...)"
            )
        if self.relation == "==" and self.margin:
            raise BadClaim(f"{self}: == has no margin; use .about(other, within=...)")
        if not 0 <= self.margin < float("inf") or (self.relation == "~=" and not self.margin):
            raise BadClaim(f"{self}: the margin is {self.margin:g}; expected a positive number")

    def _check_extremes(self) -> None:
        uneven = [part for part in self.each if part.left.extreme_of != part.right.extreme_of]
        if self.kind != "exact" and uneven:
            raise BadClaim(
                f"{self}: noise alone makes the least of several values smaller and the largest "
                "larger; expected least(...) > x, most(...) < x, spread(...) < x, or as many arms "
                "on either side"
            )

    def __str__(self) -> str:
        margin = f" (margin {self.margin:g})" if self.margin else ""
        return f"{self.left} {self.relation} {self.right}{margin}"

    def __bool__(self) -> bool:
        raise BadClaim(
            f"{self}: a comparison is no truth value, so `a > b > c`, `and`, `or`, `max` and `min` "
            "say nothing: write two claims, or use least(...)"
        )

    @property
    def _kinds(self) -> frozenset[Kind]:
        return self.left.kinds | self.right.kinds

    @property
    def kind(self) -> Kind:
        """The kind of its cases."""
        return next(iter(self._kinds))

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """Pairs of an arm, or `start`, and what its record must hold."""
        return tuple(dict.fromkeys((*self.left.needs, *self.right.needs)))

    @property
    def each(self) -> "tuple[Comparison, ...]":
        """The comparisons that must all hold for this one to hold; a law's is itself.

        Noise makes the least of several values smaller than each of them on average, so it is not
        tested itself: over runs `least(a, b) > c` is tested as a > c and b > c.
        """
        if self.kind == "exact" or self.left.extreme_of == self.right.extreme_of:
            return (self,)
        lefts, rights = self.left.all_of(self.relation), self.right.all_of(TURNED[self.relation])
        if len(lefts) == len(rights) == 1:
            return (self,)
        return tuple(replace(self, left=left, right=right) for left in lefts for right in rights)

    @property
    def percent(self) -> bool:
        """True if it compares percentages, so that their difference is in points."""
        return self.left.percent and self.right.percent

    def equal(self, right: Sequence[float] = ()) -> float:
        """Return the size below which the difference of the sides counts as none.

        It is the margin if the claim has one, and 0 for a law. Otherwise it follows from the unit
        of the sides, see `core.claims.margins`.

        Args:
            right: the values of the right side, case by case; empty before any run.
        """
        if self.margin or self.kind == "exact":
            return self.margin
        units = self.left.units | self.right.units
        return equality_margin(next(iter(units)) if len(units) == 1 else "other", right)

    def by(self, margin: float) -> "Comparison":
        """Return a copy with a margin, which `>` and `<` must exceed and `>=` and `<=` may miss."""
        return replace(self, margin=margin)

    def values(self, cases: Sequence[Runs]) -> tuple[list[float], list[float]]:
        """Return the values of the left and the right side, as lists of one length.

        A side with a single value has it repeated for each case.

        Raises:
            BadClaim: the sides have different numbers of cases.
            MissingMeasure: a record lacks what a side reads.
        """
        left, right = broadcast_values(self, self.left.values(cases), self.right.values(cases))
        return left, right

    def holds(self, left: float, right: float) -> bool:
        """Return whether the relation holds between two values."""
        return RELATIONS[self.relation](left, right, self.margin)


def as_side(other: object) -> Side:
    """Return a side unchanged, and a number as a constant side.

    Raises:
        BadClaim: `other` is neither.
    """
    if isinstance(other, Side):
        return other
    if isinstance(other, int | float) and not isinstance(other, bool):
        return Number(float(other))
    raise BadClaim(f"{other!r} beside a side of a claim: expected a number or `measure.of(arm)`")


def broadcast_values(subject: object, *sides: list[float]) -> list[list[float]]:
    """Return the values of sides as lists of one length, repeating those of single values.

    Args:
        subject: the side or comparison, for the error.
        sides: the values of each side.

    Raises:
        BadClaim: the sides have different numbers of cases.
    """
    length = max(map(len, sides))
    if any(len(side) not in (1, length) for side in sides):
        raise BadClaim(f"{subject}: sides of {' and '.join(str(len(s)) for s in sides)} cases")
    return [side if len(side) == length else side * length for side in sides]
