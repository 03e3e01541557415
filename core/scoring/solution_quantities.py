"""Accuracies of solutions that a score or a vote chooses among many, from stored scores of each."""

from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import NamedTuple

import torch
from torch import Tensor

from core.forward.quantities import Quantity, ratio_of_sums
from core.scoring.solutions import GREEDY, MODELS, NO_ANSWER, SAMPLED
from eval.errors import BadValue
from eval.stats.estimates import best_of_k

SIZES = (1, 4, 16, 64)  # numbers of solutions that the best scored one is chosen among
BEST = 5  # solutions of the highest scores that vote
ORDER = "solutions/ordered_pairs"
ANSWERED = 0.7  # share of the problems that are answered, those whose vote is clearest


class ScoredSolutions(NamedTuple):
    """K solutions of each of N problems, all of shape (N, K), with a model's scores.

    Attributes:
        answer: A number that equal answers of a problem share; `NO_ANSWER` without one.
        is_answered: 1 for a right answer.
        is_sound: 1 if all steps are right.
        score: The score of the solution.
        steps: Number of steps.
        differing: Steps whose own label is not that of the answer.
        as_steps: Steps whose score is on the side of 1/2 that their own label says.
        as_outcome: Steps whose score is on the side that the label of the answer says.
        greedy: 1 for problems whose greedy solution has a right answer (N,).
    """

    answer: Tensor
    is_answered: Tensor
    is_sound: Tensor
    score: Tensor
    steps: Tensor
    differing: Tensor
    as_steps: Tensor
    as_outcome: Tensor
    greedy: Tensor

    @property
    def gold(self) -> Tensor:
        """The share of right steps of each solution (N, K), 0 without steps."""
        right = torch.where(self.is_answered > 0, self.steps - self.differing, self.differing)
        return right / self.steps.clamp(min=1)


def scored_solutions(
    sets: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    at_start: bool = False,
    scored: str = SAMPLED,
) -> ScoredSolutions:
    """Return stored solutions with the scores of the trained model or of its start.

    Args:
        sets: The sets of columns of a file by name.
        at_start: Whether the scores are those of the start.
        scored: The name of the set, of which each model that scores the solutions has one.

    Raises:
        BadValue: the problems have different numbers of solutions.
    """
    columns, model = sets[scored], MODELS[0] if at_start else MODELS[1]
    counts = torch.tensor(columns["problem"], dtype=torch.long).bincount()
    if len(counts.unique()) > 1:
        raise BadValue("expected as many solutions of each problem, found different numbers")
    values = {
        name: torch.tensor(
            columns[name if name in columns else f"{model}_{name}"], dtype=torch.float64
        ).reshape(len(counts), -1)
        for name in ScoredSolutions._fields
        if name != "greedy"
    }
    greedy = torch.tensor(sets[GREEDY]["is_answered"], dtype=torch.float64)
    return ScoredSolutions(**values, greedy=greedy)


def ensemble(
    sets: Mapping[str, Mapping[str, Sequence[float]]], *, at_start: bool = False
) -> ScoredSolutions:
    """Return stored solutions with the mean of the standardised scores of all models as scores."""
    members = scored_by_each(sets, at_start=at_start)
    score = torch.stack([standardised(member.score) for member in members]).mean(0)
    return members[0]._replace(score=score)


def scored_by_each(
    sets: Mapping[str, Mapping[str, Sequence[float]]], *, at_start: bool = False
) -> list[ScoredSolutions]:
    """Return stored solutions with the scores of each model that scores them."""
    return [
        scored_solutions(sets, at_start=at_start, scored=name) for name in sets if name != GREEDY
    ]


def standardised(values: Tensor) -> Tensor:
    """Return values (N, K) less their mean of each problem, in deviations within a problem.

    The deviation is one number, the root of the mean square over all problems. A constant that is
    added to all values of a problem, or to all problems, changes nothing. Values that are equal
    within each problem become 0.
    """
    centred = values - values.mean(1, keepdim=True)
    deviation = centred.square().mean().sqrt()
    return centred / deviation if deviation > 0 else centred


class Ratio(NamedTuple):
    """Two numbers of each problem (N,), of which a quantity is the sum over the sum."""

    above: Tensor
    below: Tensor


def mean(values: Tensor) -> Ratio:
    """Return the ratio that is the mean of the values (N,)."""
    return Ratio(values, torch.ones_like(values))


def chances(score: Tensor, n: int) -> Tensor:
    """Return for each solution (N, K) how often it is the best scored of any n of its problem.

    Solutions of equal scores share their chances.
    """
    total = score.shape[1]
    check_subset(n, total)
    # The solution of rank r, the best one 0, wins the subsets whose others have a higher rank.
    wins = [comb(total - 1 - rank, n - 1) / comb(total, n) for rank in range(total)]
    rank = score.argsort(dim=1, descending=True).argsort(1)
    of_rank = torch.tensor(wins, dtype=torch.float64)[rank]
    same = (score.unsqueeze(2) == score.unsqueeze(1)).double()
    return (same * of_rank.unsqueeze(1)).sum(2) / same.sum(2)


def best_of(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return how often the best scored of any n solutions is right, see `best_of_k`."""
    check_subset(n, solutions.score.shape[1])
    pairs = zip(solutions.score.tolist(), solutions.is_answered.bool().tolist(), strict=True)
    return mean(torch.tensor([best_of_k(scores, right, n) for scores, right in pairs]).double())


def overrated(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the standardised score less the standardised gold of the best scored of n solutions.

    The gold is the share of right steps, see `standardised`. A score that is the gold has 0.
    """
    gap = standardised(solutions.score) - standardised(solutions.gold)
    return mean((chances(solutions.score, n) * gap).sum(1))


def overrated_by_chance(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return what `overrated` would be of the same scores in an order that ignores the gold.

    It is the standardised score of the best scored one, as the gold of its choice is 0 on average.
    """
    return mean((chances(solutions.score, n) * standardised(solutions.score)).sum(1))


def check_subset(n: int, total: int) -> None:
    """Raise `BadValue` if n of `total` solutions cannot be drawn."""
    if n > total:
        raise BadValue(f"{n} of {total} solutions of each problem: expected at most all of them")


def blocks(values: Tensor, n: int) -> Tensor:
    """Return values (N, K) as disjoint draws of n solutions (N, K // n, n).

    Raises:
        BadValue: there are fewer than n solutions.
    """
    check_subset(n, values.shape[1])
    return values[:, : values.shape[1] // n * n].reshape(len(values), -1, n)


class Election(NamedTuple):
    """Votes of draws of n solutions, all of shape (N, K // n).

    Attributes:
        right: Share of right answers among those with the most votes.
        wrong_trace: Share, among the winning answers, of right ones whose solution of the highest
            score has a wrong step.
    """

    right: Tensor
    wrong_trace: Tensor


def elect(solutions: ScoredSolutions, weights: Tensor, n: int) -> Election:
    """Let draws of n solutions vote for their answers with weights (N, K)."""
    answer, weight, score, is_right, is_sound = (
        blocks(values, n)
        for values in (
            solutions.answer, weights, solutions.score, solutions.is_answered, solutions.is_sound
        )
    )  # fmt: skip
    same = answer.unsqueeze(-1) == answer.unsqueeze(-2)  # (..., n, n)
    has_answer = answer != NO_ANSWER
    votes = (same * weight.unsqueeze(-2)).sum(-1).masked_fill(~has_answer, -torch.inf)
    wins = (votes >= votes.amax(-1, keepdim=True) - 1e-9) & has_answer
    # Of each winning answer the solution of the highest score, the first of equal ones, stands.
    rank = score.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    ahead = same & (rank.unsqueeze(-2) < rank.unsqueeze(-1))
    stands = (wins & ~ahead.any(-1)).double()
    winners = stands.sum(-1).clamp(min=1)
    right = (stands * is_right).sum(-1) / winners
    return Election(right, (stands * is_right * (1 - is_sound)).sum(-1) / winners)


def vote(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the accuracy of the most frequent answer of n solutions; tied answers share it."""
    return mean(elect(solutions, torch.ones_like(solutions.score), n).right.mean(1))


def weighted_vote(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the accuracy of the answer whose scores have the largest sum, among n solutions."""
    return mean(elect(solutions, solutions.score, n).right.mean(1))


def best_vote(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the accuracy of the vote of the `BEST` solutions of the highest scores among n."""
    scores = blocks(solutions.score, n)
    rank = scores.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    weights = torch.zeros_like(solutions.score)
    weights[:, : scores.shape[1] * n] = (rank < BEST).double().flatten(1)
    return mean(elect(solutions, weights, n).right.mean(1))


def weighted_trace_error(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the share of solutions with a wrong step among right answers of a weighted vote of n.

    Shown is the solution of the highest score that gives the winning answer.
    """
    election = elect(solutions, solutions.score, n)
    return Ratio(election.wrong_trace.sum(1), election.right.sum(1))


def trace_error(solutions: ScoredSolutions) -> Ratio:
    """Return the share of solutions with a wrong step among those with a right answer."""
    right = solutions.is_answered
    return Ratio((right * (1 - solutions.is_sound)).sum(1), right.sum(1))


def ordered_pairs(solutions: ScoredSolutions) -> Ratio:
    """Return the share of a right and a wrong answer to one problem whose scores are in order.

    It is the area under the curve of a problem's receiver operating characteristic, over all pairs
    of all problems; equal scores count half.
    """
    score, right = solutions.score, solutions.is_answered
    gap = score.unsqueeze(2) - score.unsqueeze(1)
    pairs = right.unsqueeze(2) * (1 - right).unsqueeze(1)
    return Ratio((pairs * (gap.sign() + 1) / 2).sum((1, 2)), pairs.sum((1, 2)))


def agreement(solutions: ScoredSolutions) -> Tensor:
    """Return the share of the solutions of each problem that give its most frequent answer (N,)."""
    answer = solutions.answer
    same = (answer.unsqueeze(2) == answer.unsqueeze(1)) & (answer != NO_ANSWER).unsqueeze(1)
    return same.double().mean(2).amax(1)


def clear_vote(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return the accuracy of `vote` on the share `ANSWERED` of the problems of most agreement."""
    shares = agreement(solutions)
    count = round(ANSWERED * len(shares))
    answered = torch.zeros_like(shares)
    answered[shares.argsort(descending=True, stable=True)[:count]] = 1.0
    return Ratio(vote(solutions, n).above * answered, answered)


def spread_of_agreement(solutions: ScoredSolutions) -> Ratio:
    """Return the mean distance of the agreement of a problem from that of all."""
    shares = agreement(solutions)
    return mean((shares - shares.mean()).abs())


Measure = Callable[[ScoredSolutions], Ratio]
SOLUTION_QUANTITIES: Mapping[str, Measure] = {
    "solutions/greedy": lambda s: mean(s.greedy),
    **{f"solutions/best_of_{n}": lambda s, n=n: best_of(s, n) for n in SIZES},
    **{f"solutions/overrated_of_{n}": lambda s, n=n: overrated(s, n) for n in SIZES},
    **{
        f"solutions/overrated_by_chance_of_{n}": lambda s, n=n: overrated_by_chance(s, n)
        for n in SIZES
    },
    "solutions/pass_at_64": lambda s: mean(blocks(s.is_answered, 64).amax(-1).mean(1)),
    "solutions/vote_of_16": lambda s: vote(s, 16),
    "solutions/clear_vote_of_16": lambda s: clear_vote(s, 16),
    "solutions/weighted_vote_of_16": lambda s: weighted_vote(s, 16),
    "solutions/vote_of_best_5_of_16": lambda s: best_vote(s, 16),
    "solutions/trace_error": trace_error,
    "solutions/trace_error_of_weighted_4": lambda s: weighted_trace_error(s, 4),
    ORDER: ordered_pairs,
    "solutions/agreement_spread": spread_of_agreement,
    "steps/differing_labels": lambda s: Ratio(s.differing.sum(1), s.steps.sum(1)),
    "steps/as_steps": lambda s: Ratio(s.as_steps.sum(1), s.steps.sum(1)),
    "steps/as_outcome": lambda s: Ratio(s.as_outcome.sum(1), s.steps.sum(1)),
}


def solution_quantity(name: str, *scored: ScoredSolutions) -> Quantity:
    """Return a quantity of `SOLUTION_QUANTITIES`, with its interval over the sampling of problems.

    It is the mean over models that score the same solutions, `scored` of each. A share of none is
    0, and that of no pairs in order 1/2.

    Raises:
        BadValue: there are fewer solutions of a problem than it needs.
    """
    ratios = [SOLUTION_QUANTITIES[name](solutions) for solutions in scored]
    above, below = (torch.stack(parts).mean(0) for parts in zip(*ratios, strict=True))
    if not below.any():
        value = 0.5 if name == ORDER else 0.0
        return Quantity(value, value, value, len(below))
    return ratio_of_sums(above.split(1), below.split(1))
