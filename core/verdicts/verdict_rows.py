"""Makes the fields of a verdict: the claim, its numbers and its gates."""

from collections.abc import Sequence

from core.claims import Claim, Comparison, Side, Untestable
from core.claims.gates import CheckedGate
from core.records.verdict_row import ClaimFields, GateRow, Numbers, VerdictSide

FINITE = 1e300  # stands for infinity, which JSON cannot express


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
