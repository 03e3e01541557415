"""A claim that several comparisons make together is judged by the one that holds least."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from core.claims import Comparison, Runs
from core.verdicts.shared_problems import shared_variance
from eval.stats.seeds import Effect, Verdict, seed_effect

AGAINST: Sequence[Verdict] = ("held", "tie", "undecided", "refuted")  # a claim, ever more


@dataclass(frozen=True)
class Judged:
    """A comparison, its sides' values case by case, and what they say at a level."""

    test: Comparison
    left: Sequence[float]
    right: Sequence[float]
    effect: Effect
    level: float


def weakest(test: Comparison, cases: Sequence[Runs], level: float) -> Judged:
    """Of the comparisons that must all hold, the one that speaks most against the claim.

    All hold where this one does. One of k that fails refutes the claim, so each fails at a k-th of
    the level: the claim is wrongly held, or wrongly refuted, no more often than that of one.
    """
    each = test.each
    found = [judged_alone(one, cases, level, len(each)) for one in each]
    return max(found, key=speaks_against)


def judged_alone(test: Comparison, cases: Sequence[Runs], level: float, among: int) -> Judged:
    """One comparison, paired case by case; the effect is left - right."""
    left, right = test.values(cases)
    own = level if among == 1 or test.holds(mean(left), mean(right)) else level / among
    effect = seed_effect(
        [a - b for a, b in zip(left, right, strict=True)],
        test.margin,
        test.relation,
        level=own,
        shared=shared_variance(test, cases),
        equal=test.equal,
    )
    return Judged(test, left, right, effect, own)


def speaks_against(one: Judged) -> tuple[int, float]:
    """A refuted comparison most, the surest first, then what is undecided; a surely held least."""
    p = 1.0 if one.effect.p is None else one.effect.p
    rank = AGAINST.index(one.effect.verdict)
    return rank, -p if one.effect.verdict == "refuted" else p
