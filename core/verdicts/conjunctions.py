"""Judges claims that consist of several comparisons: the least favourable one decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from core.claims import Comparison, Runs
from core.verdicts.replications import replicated_differences
from core.verdicts.shared_problems import shared_variance
from eval.stats.seeds import Effect, Verdict, seed_effect

# From the most favourable verdict on a claim to the least.
FAVOUR: Sequence[Verdict] = ("held", "tie", "undecided", "refuted")


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison, the values of both sides case by case, and the effect tested at a level.

    `replications` are the differences that are tested, see `replicated_differences`. `shared` is
    the variance of the effect caused by problems that all seeds share, see `shared_variance`.
    """

    test: Comparison
    left: Sequence[float]
    right: Sequence[float]
    replications: Sequence[float]
    effect: Effect
    level: float
    shared: float | None

    @property
    def differences(self) -> list[float]:
        """The left value less the right one, case by case."""
        return [a - b for a, b in zip(self.left, self.right, strict=True)]

    @property
    def p_against(self) -> float:
        """The one-sided p of the hypothesis that the claim holds; small if the data contradict it.

        It is 0.5 with fewer than two seeds.
        """
        p = self.effect.p
        if p is None:
            return 0.5
        is_true = self.test.holds(mean(self.left), mean(self.right))
        return 1 - p / 2 if is_true else p / 2


def judge_conjunction(test: Comparison, cases: Sequence[Runs], level: float) -> JudgedComparison:
    """Judge all comparisons of a claim and return the least favourable one.

    If it holds, all hold. Any one of k comparisons that fails refutes the claim, so each is refuted
    at level / k only: the claim is wrongly held or wrongly refuted no more often than a claim of
    one comparison.

    Args:
        test: the comparison that the claim states, whose `each` must all hold.
        cases: the records of each seed; empty for a simulation.
        level: of the test, 0 to 1.
    """
    comparisons = [judge_comparison(part, cases, level, len(test.each)) for part in test.each]
    return max(comparisons, key=disfavour)


def judge_comparison(
    test: Comparison, cases: Sequence[Runs], level: float, among: int
) -> JudgedComparison:
    """Test one comparison, paired case by case; its effect is left - right.

    Args:
        test: the comparison.
        cases: the records of each seed; empty for a simulation.
        level: of the test, divided by `among` if the comparison does not hold of the means.
        among: the number of comparisons that the claim consists of.
    """
    left, right = test.values(cases)
    shared = shared_variance(test, cases)
    holds_of_means = test.holds(mean(left), mean(right))
    own_level = level if among == 1 or holds_of_means else level / among
    replications = replicated_differences(left, right, cases)
    effect = seed_effect(
        replications,
        test.margin,
        test.relation,
        level=own_level,
        shared=shared or 0.0,
        equal=test.equal(right),
    )
    return JudgedComparison(test, left, right, replications, effect, own_level, shared)


def disfavour(comparison: JudgedComparison) -> tuple[int, float]:
    """Return a sort key that grows from comparisons that surely hold to those surely refuted."""
    return FAVOUR.index(comparison.effect.verdict), -comparison.p_against
