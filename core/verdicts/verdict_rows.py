"""Verdicts as records store them: the claim, its numbers and the reason."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from core.claims import Claim, Comparison, Side, Untestable
from core.claims.gates import CheckedGate

FINITE = 1e300  # stands for infinity, which JSON cannot express


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
    power: float | None


class GateRow(TypedDict):
    """A gate of a claim: its measure, arm, relation and bound, and a value per seed.

    `below` is the verdict if the mean of the values misses the bound.
    """

    below: str
    measure: str
    arm: str | None
    relation: str
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


NO_NUMBERS: Numbers = {
    "effect": None, "low": None, "high": None, "p": None,
    "holm": None, "level": None, "freedom": None, "seen": None, "power": None,
}  # fmt: skip


def claim_fields(
    claim: Claim,
    test: Comparison | Untestable,
    left: Sequence[float],
    right: Sequence[float],
) -> ClaimFields:
    """Return what a verdict states about its claim.

    Args:
        claim: the claim.
        test: its comparison, or the one of its comparisons that decides.
        left: the values of the left side, case by case.
        right: those of the right side.
    """
    fields: ClaimFields = {
        "id": claim.slug,
        "statement": claim.statement,
        "relation": "",
        "margin": 0.0,
        "equal": 0.0,
        "unit": "",
        "left": None,
        "right": None,
    }
    if isinstance(test, Untestable):
        return fields
    return {
        **fields,
        "relation": test.relation,
        "margin": test.margin,
        "equal": test.equal(right),
        "unit": "points" if test.percent else "",
        "left": side_fields(test.left, left),
        "right": side_fields(test.right, right),
    }


def gate_row(checked: CheckedGate) -> GateRow:
    """Return a gate as a verdict stores it."""
    gate = checked.gate
    side = side_fields(gate.test.left, checked.values)
    return {**side, "below": gate.below, "relation": gate.test.relation, "bound": checked.bound}


def side_fields(side: Side, values: Sequence[float]) -> VerdictSide:
    """Return what a side measures, on which arm, and its values."""
    measure, arm = side.label
    return {"measure": measure, "arm": arm, "values": list(values)}
