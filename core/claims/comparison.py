"""Sides of a claim, arithmetic on them, and the comparison that two of them make.

A side gives one value for each case. What a case is follows from its kind: the records of one seed
(`runs`), one seed (`simulated`), or one case of a law (`exact`). A number is of no kind: it has one
value, the same in every case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.claims.needs import BadClaim, Kind, MissingMeasure, Need, Runs, Stand

Relation: TypeAlias = Literal[">", ">=", "<", "<=", "==", "~="]

ONE_POINT = 1.0  # of a percentage: a smaller difference is no reason to prefer a method

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
    """One side of a comparison; `parts` are the sides it is made of."""

    __hash__ = object.__hash__

    @property
    def parts(self) -> "tuple[Side, ...]":
        """The sides that this one is computed from."""
        return ()

    @property
    def kinds(self) -> frozenset[Kind]:
        """What its cases are; none for a number."""
        return frozenset(kind for part in self.parts for kind in part.kinds)

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """What the record of each arm must hold; the arm may be `start`."""
        return tuple(dict.fromkeys(need for part in self.parts for need in part.needs))

    @property
    def label(self) -> tuple[str, str | None]:
        """What is measured, and on which arm where it is one measure on one arm."""
        return str(self), None

    @property
    def percent(self) -> bool:
        """Whether its values are percentages, or differences of some."""
        return bool(self.parts) and all(part.percent for part in self.parts)

    @property
    def extreme_of(self) -> int:
        """Of how many values it is the least, the largest or the spread; 0 if it is no extreme."""
        return 0

    def all_of(self, relation: Relation) -> "tuple[Side, ...]":
        """The sides that must all be in a relation to a value for this one to be in it."""
        del relation
        return (self,)

    def stands(self, cases: Sequence[Runs]) -> "list[Stand]":
        """Where the percentages that it reads stood before training and stand after it."""
        return [stand for part in self.parts for stand in part.stands(cases)]

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """One value for each case; a single one where it is the same in all."""
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
        """Equivalence: the two differ by less than `within`."""
        return Comparison(self, "~=", as_side(other), within)


@dataclass(frozen=True, eq=False)
class Number(Side):
    """A constant."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"

    @property
    def percent(self) -> bool:
        """A constant stands for whatever it is compared with."""
        return True

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """The constant, once."""
        del cases
        return [self.value]


OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "/": lambda left, right: left / right,
}


@dataclass(frozen=True, eq=False)
class Combined(Side):
    """A sum, difference or ratio of two sides, case by case."""

    operator: str
    left: Side
    right: Side

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"

    @property
    def percent(self) -> bool:
        """A ratio of percentages is none."""
        return self.operator != "/" and super().percent

    @property
    def parts(self) -> tuple[Side, ...]:
        """Both sides."""
        return self.left, self.right

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """One result for each case.

        Raises:
            MissingMeasure: it divides by zero.
        """
        pairs = zip(*aligned(self, *(part.values(cases) for part in self.parts)), strict=True)
        try:
            return [OPERATORS[self.operator](a, b) for a, b in pairs]
        except ZeroDivisionError:
            raise MissingMeasure(f"{self} divides by zero") from None


@dataclass(frozen=True, eq=False)
class Size(Side):
    """The absolute value of a side, case by case."""

    side: Side

    def __str__(self) -> str:
        return f"|{self.side}|"

    @property
    def parts(self) -> tuple[Side, ...]:
        """The side."""
        return (self.side,)

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Each value without its sign."""
        return [abs(value) for value in self.side.values(cases)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a claim asserts of two sides.

    With a margin, `>` and `<` must hold by more than it, `>=` and `<=` may fail by it, and `~=`
    holds where the sides differ by less. What neither holds nor fails is a tie where the sides are
    shown to differ by less than `equal`: the margin, or one point of a percentage.

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
            found = " and ".join(sorted(self._kinds)) or "numbers"
            raise BadClaim(f"{self}: compares {found}; expected runs, simulations or laws alone")
        if self.relation == "==" and self.kind != "exact":
            raise BadClaim(
                f"{self}: == is for laws, which are exact; use .about(other, within=...)"
            )
        if self.relation == "==" and self.margin:
            raise BadClaim(f"{self}: == has no margin; use .about(other, within=...)")
        if not 0 <= self.margin < float("inf") or (self.relation == "~=" and not self.margin):
            raise BadClaim(f"{self}: the margin is {self.margin:g}; expected a positive number")
        uneven = [one for one in self.each if one.left.extreme_of != one.right.extreme_of]
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
        """What its cases are."""
        return next(iter(self._kinds))

    @property
    def needs(self) -> tuple[tuple[str, Need], ...]:
        """What the record of each arm must hold."""
        return tuple(dict.fromkeys((*self.left.needs, *self.right.needs)))

    @property
    def each(self) -> "tuple[Comparison, ...]":
        """The comparisons that must all hold for this one to; of a law, itself.

        The least of several values that have noise lies below each of them, so it is not compared
        itself: over runs `least(a, b) > c` says that a > c and b > c.
        """
        if self.kind == "exact" or self.left.extreme_of == self.right.extreme_of:
            return (self,)
        lefts, rights = self.left.all_of(self.relation), self.right.all_of(TURNED[self.relation])
        if len(lefts) == len(rights) == 1:
            return (self,)
        return tuple(replace(self, left=left, right=right) for left in lefts for right in rights)

    @property
    def percent(self) -> bool:
        """Whether it compares percentages, so that their difference is in points."""
        return self.left.percent and self.right.percent

    @property
    def equal(self) -> float:
        """The difference below which two sides count as equal; 0 where there is none to name."""
        return self.margin or (ONE_POINT if self.percent else 0.0)

    def by(self, margin: float) -> "Comparison":
        """The same with a margin: `>` and `<` must hold by more, `>=` and `<=` may fail by it."""
        return replace(self, margin=margin)

    def values(self, cases: Sequence[Runs]) -> tuple[list[float], list[float]]:
        """Both sides' values, case by case."""
        left, right = aligned(self, self.left.values(cases), self.right.values(cases))
        return left, right

    def holds(self, left: float, right: float) -> bool:
        """Whether the relation holds between two values."""
        return RELATIONS[self.relation](left, right, self.margin)


def as_side(other: object) -> Side:
    """A side as it is, a number as a constant.

    Raises:
        BadClaim: it is neither.
    """
    if isinstance(other, Side):
        return other
    if isinstance(other, int | float) and not isinstance(other, bool):
        return Number(float(other))
    raise BadClaim(f"{other!r} beside a side of a claim: expected a number or `measure.of(arm)`")


def aligned(what: object, *sides: list[float]) -> list[list[float]]:
    """Lists of one length; a single value stands for every case.

    Raises:
        BadClaim: their numbers of cases differ.
    """
    length = max(map(len, sides))
    if any(len(side) not in (1, length) for side in sides):
        raise BadClaim(f"{what}: sides of {' and '.join(str(len(s)) for s in sides)} cases")
    return [side if len(side) == length else side * length for side in sides]
