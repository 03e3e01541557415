"""Verdicts as records store them: the claim, its numbers and the reason."""

from collections.abc import Sequence
from typing import TypedDict

from core.claims import Claim, Comparison, Side, Untestable

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
    the claims of the paper, `seen` the smallest effect that these seeds could have decided.
    """

    effect: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    level: float | None
    freedom: float | None
    seen: float | None


class VerdictRow(ClaimFields, Numbers):
    """The verdict on one claim as it is stored in a record of verdicts."""

    verdict: str
    reason: str
    seeds: list[int]
    runs: list[str]


NO_NUMBERS: Numbers = {
    "effect": None, "low": None, "high": None, "p": None,
    "holm": None, "level": None, "freedom": None, "seen": None,
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
        "equal": test.equal,
        "unit": "points" if test.percent else "",
        "left": side_fields(test.left, left),
        "right": side_fields(test.right, right),
    }


def side_fields(side: Side, values: Sequence[float]) -> VerdictSide:
    """Return what a side measures, on which arm, and its values."""
    measure, arm = side.label
    return {"measure": measure, "arm": arm, "values": list(values)}
