"""Makes the fields of a verdict: the claim, its numbers and its gates; verdicts without a test."""

from collections.abc import Sequence
from typing import get_args

from core.claims import Claim, Comparison, Side, Untestable
from core.claims.gates import BelowGate, CheckedGate
from core.records.verdict_row import ClaimFields, GateRow, Numbers, VerdictRow, VerdictSide

FINITE = 1e300  # stands for infinity, which JSON cannot express
ON_TRIAL_SEED = "on the trial seed, which is not judged, "
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


def exact_verdict(claim: Claim, test: Comparison) -> VerdictRow:
    """Judge a law: it is held if the relation holds in every case, else refuted."""
    left, right = test.values(())
    failures = sum(not test.holds(a, b) for a, b in zip(left, right, strict=True))
    left, right = ([min(max(value, -FINITE), FINITE) for value in side] for side in (left, right))
    differences = [a - b for a, b in zip(left, right, strict=True)]
    cases = f"{len(left)} case{'s' if len(left) > 1 else ''}"
    return {
        **claim_fields(claim, test, left, right),
        **NO_NUMBERS,
        "effect": sum(differences) / len(differences),
        "low": min(differences),
        "high": max(differences),
        "verdict": "refuted" if failures else "held",
        "reason": (
            f"exact: fails in {failures} of {cases}" if failures else f"exact: holds in {cases}"
        ),
        "seeds": [],
        "runs": [],
    }


def missed_verdict(claim: Claim, missed: str) -> VerdictRow:
    """Return the verdict on a claim that was not run as it misses a gate on the trial seed.

    Args:
        claim: the claim.
        missed: the name of the verdict, ": " and the number. With another beginning, for a gate
            that cannot be read, the claim is undecided.
    """
    below, _, number = missed.partition(": ")
    if below in get_args(BelowGate):
        return untested_verdict(claim, ON_TRIAL_SEED + number, below)
    return untested_verdict(claim, ON_TRIAL_SEED + missed)


def untested_verdict(claim: Claim, reason: str, verdict: str = "undecided") -> VerdictRow:
    """Return the verdict on a claim that these runs, or any runs, cannot test."""
    return {
        **claim_fields(claim, claim.test, (), ()),
        **NO_NUMBERS,
        "verdict": verdict,
        "reason": reason,
        "seeds": [],
        "runs": [],
    }
