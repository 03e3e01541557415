"""Types of a verdict as records store it: the claim, its numbers, its gates and the reason."""

from typing import NotRequired, TypedDict

from core.claims.comparison import Relation


class VerdictSide(TypedDict):
    """A side of a judged comparison: its measure, its arm, and a value per case."""

    measure: str
    arm: str | None
    values: list[float]


class ClaimFields(TypedDict):
    """The claim as a verdict states it: the sentence, the comparison and both sides."""

    id: str
    statement: str
    relation: str
    margin: float
    equal: float
    unit: str
    left: VerdictSide | None
    right: VerdictSide | None


class Numbers(TypedDict):
    """The numbers of a verdict, None where there are none.

    `effect`, `low` and `high` are those of left - right. `holm` is `p` after Holm's correction over
    the claims of the paper, `seen` the smallest effect that these seeds could have decided. `power`
    is the probability (0 to 1) that later looks decide an undecided claim.
    """

    effect: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    level: float | None
    freedom: float | None
    seen: float | None
    power: NotRequired[float | None]


class GateRow(TypedDict):
    """A gate of a claim: its measure, arm, relation and bound, and a value per seed.

    `below` is the verdict if the mean of the values misses the bound.
    """

    below: str
    measure: str
    arm: str | None
    relation: Relation
    bound: float
    values: list[float]


class VerdictRow(ClaimFields, Numbers):
    """The verdict on one claim as it is stored in a record of verdicts.

    A claim judged over runs has its `gates`.
    """

    verdict: str
    reason: str
    seeds: list[int]
    runs: list[str]
    gates: NotRequired[list[GateRow]]


# Fields of a verdict that the oldest records lack.
LATER_FIELDS = frozenset({"equal", "unit", "holm", "level", "freedom", "seen"})
