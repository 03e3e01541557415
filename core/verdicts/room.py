"""Finds the percentages whose distance from 0 or 100 % leaves a claim no room to hold."""

from collections.abc import Sequence
from math import isclose
from statistics import mean

from core.claims import Runs
from core.claims.comparison import Side
from core.verdicts.conjunctions import JudgedComparison

LARGER = (">", ">=")  # relations in which a claim says that the left side is the larger one
SMALLER = ("<", "<=")
ROOM = 3.0  # points from 0 or 100 %; a percentage that stays this close cannot have moved


def reason_without_room(comparison: JudgedComparison, cases: Sequence[Runs]) -> str:
    """Return why a comparison has no room in these runs; empty if it has.

    Args:
        comparison: the comparison, judged over the runs.
        cases: the records of each seed by arm.
    """
    return (
        without_movement(comparison, cases)
        or out_of_reach(comparison, cases)
        or at_ceiling(comparison, cases)
    )


def without_movement(comparison: JudgedComparison, cases: Sequence[Runs]) -> str:
    """Return which percentage was at 0 or 100 before and after training; empty if none was.

    Such a measure could not move, so a comparison with it says nothing about the training.
    """
    for side in (comparison.test.left, comparison.test.right):
        for measure, before, after in side.stands(cases):
            for end in (0.0, 100.0):
                if max(abs(before - end), abs(after - end)) <= ROOM:
                    return (
                        f"{measure} stands at {before:.1f} % before training, {after:.1f} % after"
                    )
    return ""


def out_of_reach(comparison: JudgedComparison, cases: Sequence[Runs]) -> str:
    """Return which smaller gain was limited by 100 % to less than the other side gained.

    However well that training had gone, the other side would have gained more. The result is empty
    if no percentage was that close to 100.
    """
    if comparison.test.relation not in LARGER + SMALLER:
        return ""
    (_, larger_gain), (side, gain) = sides_by_claim(comparison)
    for measure, before, after in side.stands(cases):
        if isclose(gain, after - before) and 100 - before < larger_gain:
            return (
                f"{measure} stands at {before:.1f} % before training: it could gain "
                f"{100 - before:.1f} points, and the other side gained {larger_gain:.1f}"
            )
    return ""


def at_ceiling(comparison: JudgedComparison, cases: Sequence[Runs]) -> str:
    """Return which end at 100 % keeps a claimed difference within the equality margin.

    The side that the claim says is the larger one could end above the other one by less than the
    margin, so that a tie follows from arithmetic. The result is empty if no percentage is that
    close to 100, if the difference is decided, or if the claim allows equality.
    """
    if comparison.test.relation not in (">", "<") or comparison.effect.verdict not in (
        "tie",
        "undecided",
    ):
        return ""
    _, (side, value) = sides_by_claim(comparison)
    margin = comparison.test.equal(comparison.right)
    for measure, _, after in side.stands(cases):
        if isclose(value, after) and 100 - after < margin:
            return (
                f"{measure} ends at {after:.1f} %: the other side could end {100 - after:.1f} "
                f"points above, and {margin:g} count as none"
            )
    return ""


def sides_by_claim(comparison: JudgedComparison) -> list[tuple[Side, float]]:
    """Return both sides with their means over the seeds, the side claimed to be larger first."""
    test = comparison.test
    sides = [(test.left, mean(comparison.left)), (test.right, mean(comparison.right))]
    return sides if test.relation in LARGER else sides[::-1]
