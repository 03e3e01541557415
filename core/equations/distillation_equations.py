"""Laws of distillation in plain numbers: divergences, returns, weights, and groups of tokens."""

from collections.abc import Sequence
from itertools import product
from math import exp, inf, log, nan

import torch
from torch import Tensor

from core.losses.divergence import divergence, on_top_k, sampled_reverse_kl, token_divergences
from core.losses.returns import later_rewards, mean_of_later_rewards
from core.losses.selection import has_hint
from core.losses.token_weights import capped_ratio, position_weights
from core.losses.transport import (
    LEAST,
    aligned_groups,
    matched_and_sorted,
    matches_of,
    merged,
    sorted_l1,
)

BETAS = (0.0, 0.2, 0.5, 1.0)
# Probabilities of a student and of a teacher: all tokens possible; one under neither model, and
# each possible under one model alone, which no KL of the pair divides by.
PAIRS = (
    ((0.5, 0.2, 0.2, 0.1), (0.1, 0.3, 0.2, 0.4)),
    ((0.7, 0.2, 0.1, 0.0), (0.3, 0.3, 0.4, 0.0)),
)
DISJOINT = ((0.6, 0.4, 0.0, 0.0), (0.0, 0.3, 0.7, 0.0))
REWARDS, TRAINED = (0.3, -1.0, 9.0, 0.7, 2.0, 9.0), (1, 1, 0, 1, 1, 0)
LOGITS = ((1.0, 0.4, -1.0), (0.2, 0.9, -0.3))
# Bytes at which tokens end on both sides, and the tokens of each group: with a beginning token, an
# end token, a rest without a common end, and a character that one side cuts.
GROUPS = (
    (([4, 9, 10], [2, 4, 10]), ([[0], [1, 2]], [[0, 1], [2]])),
    (([0, 3, 6], [3, 6, 6]), ([[1], [2]], [[0], [1]])),
    (([3, 6, 8], [3, 7]), ([[0]], [[0]])),
    (([3, 4, 6], [3, 6]), ([[0], [1, 2]], [[0], [1]])),
    (([1, 2], [1, 2]), ([[0], [1]], [[0], [1]])),
)
# Which of three answers succeed, which have feedback, and which have a hint.
HINTS = (
    ((0, 0, 0), (0, 0, 0), [0, 0, 0]),
    ((1, 0, 0), (0, 0, 0), [0, 1, 1]),
    ((1, 1, 0), (0, 0, 0), [1, 1, 1]),
    ((0, 0, 0), (0, 1, 0), [0, 1, 0]),
)
SORTED, OTHER = (0.25, 0.5, 0.25), (0.3, 0.3, 0.2, 0.2)
# Two vocabularies with two entries in common, and merged probabilities of both. One is impossible.
TOKENS, OTHER_TOKENS = {"a": 0, "b": 1, "c": 2, "d": 3}, {"d": 1, "x": 2, "b": 0}
MERGED, OTHER_MERGED = (0.1, 0.3, 0.2, 0.0), (0.4, 0.1, 0.25)
LOGS = (-0.4, 0.3, nan, 25.0, -25.0, nan)  # logarithms of ratios


def plain_divergence(student: Sequence[float], teacher: Sequence[float], beta: float) -> float:
    """Return D_beta of two distributions of plain numbers, the KLs at 0 and 1."""
    if beta == 0:
        return plain_kl(teacher, student)
    if beta == 1:
        return plain_kl(student, teacher)
    mixed = [(1 - beta) * s + beta * t for s, t in zip(student, teacher, strict=True)]
    return beta * plain_kl(teacher, mixed) + (1 - beta) * plain_kl(student, mixed)


def plain_kl(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the sum of p log(p / q) over the tokens with p > 0."""
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def likeliest(probabilities: Sequence[float], k: int, *, has_tail: bool) -> list[float]:
    """Return the first `k` probabilities with the mass of the others, or divided by their sum."""
    top, rest = probabilities[:k], sum(probabilities[k:])
    return [*top, rest] if has_tail else [p / sum(top) for p in top]


def logs_of(pair: Sequence[Sequence[float]]) -> tuple[Tensor, Tensor]:
    """Return the logarithms (1, V) of a student's and a teacher's probabilities."""
    student, teacher = (torch.tensor([p], dtype=torch.float64).log() for p in pair)
    return student, teacher


def divergence_errors() -> list[float]:
    """Return the error of each divergence: whole, of two and three tokens, with tail or without."""
    errors = list[float]()
    for pair, beta in (*product(PAIRS, BETAS), (DISJOINT, 0.2), (DISJOINT, 0.5)):
        errors.append(divergence(*logs_of(pair), beta).item() - plain_divergence(*pair, beta))
    for pair, beta, k, has_tail in product(PAIRS, BETAS, (2, 3), (True, False)):
        found = divergence(*on_top_k(*logs_of(pair), k, has_tail=has_tail), beta).item()
        student, teacher = (likeliest(p, k, has_tail=has_tail) for p in pair)
        errors.append(found - plain_divergence(student, teacher, beta))
    alone = divergence(*on_top_k(*logs_of(PAIRS[0]), 1, has_tail=True), 1.0).item()
    return [*errors, alone - plain_divergence((0.5, 0.5), (0.1, 0.9), 1.0)]


def gradient_changes() -> list[float]:
    """Return how much the gradient of a trained token differs from that without what is added.

    The vocabulary is filled up with a token that is impossible under both models, and a token
    before it, whose logits are no numbers, is not trained.
    """
    return [
        float((padded - exact).abs().max())
        for beta, k in product(BETAS, (0, 2, 3))
        for exact, padded in [(_gradient(beta, k, (), ()), _gradient(beta, k, (nan,), (-inf,)))]
    ]


def _gradient(
    beta: float, k: int, before: tuple[float, ...], impossible: tuple[float, ...]
) -> Tensor:
    """Return the gradient by the logits of three possible tokens (3,), of the top `k` or all."""
    rows = [[(*row, *impossible)] for row in LOGITS]
    tokens = [[before * len(row[0])] * len(before) + row for row in rows]
    logits, teacher = torch.tensor(tokens, dtype=torch.float64).unsqueeze(1)
    mask = torch.tensor([[0] * len(before) + [1]])

    def measure(s: Tensor, t: Tensor) -> Tensor:
        pair = on_top_k(s, t, k, has_tail=True) if k else (s, t)
        return divergence(*pair, beta)

    logits.requires_grad_()
    found = (
        token_divergences(logits, teacher, mask, measure)
        if before
        else measure(logits[0].log_softmax(-1), teacher[0].log_softmax(-1))
    )
    return torch.autograd.grad(found.sum(), logits)[0][0, -1, :3]


def token_errors() -> list[float]:
    """Return the errors of returns, weights by place and capped ratios, and of a sampled loss.

    Numbers of tokens that are not trained are left out of the equations.
    """
    rewards, mask = (torch.tensor([x], dtype=torch.float64) for x in (REWARDS, TRAINED))
    trained = [r for r, m in zip(REWARDS, TRAINED, strict=True) if m]
    errors = list[float]()
    for gamma, has_own in product((0.0, 0.5, 1.0), (True, False)):
        arguments = {"gamma": gamma, "has_own": has_own}
        sums, means = (
            later_rewards(rewards, mask, **arguments),
            mean_of_later_rewards(rewards, mask, **arguments),
        )
        for t, place in enumerate(torch.tensor(TRAINED).nonzero()[:, 0].tolist()):
            powers = [
                (gamma ** (s - t), trained[s]) for s in range(t + (not has_own), len(trained))
            ]
            total, weight = sum(g * r for g, r in powers), sum(g for g, _ in powers)
            errors.append(sums[0, place].item() - total)
            errors.append(means[0, place].item() - (total / weight if weight else 0.0))
    return [*errors, *_weight_errors(rewards, mask), *_ratio_errors(mask)]


def _weight_errors(advantages: Tensor, mask: Tensor) -> list[float]:
    """Return the errors of the weights by place with each sum that S can be."""
    sizes = [abs(a) for a, m in zip(REWARDS, TRAINED, strict=True) if m]
    errors = list[float]()
    for total, last in (("without_last", len(sizes) - 1), ("all", len(sizes))):
        found = position_weights(advantages, mask, 0.5, total)[mask > 0].tolist()
        stated = [1 + 0.5 * (1 - sum(sizes[:t]) / sum(sizes[:last])) for t in range(len(sizes))]
        errors += [a - b for a, b in zip(found, stated, strict=True)]
    return [*errors, position_weights(0 * advantages, mask, 0.5, "all").max().item() - 1.5]


def _ratio_errors(mask: Tensor) -> list[float]:
    """Return the errors of capped ratios, and of the loss of a sampled token and its gradient."""
    ratios = capped_ratio(torch.tensor([LOGS], dtype=torch.float64), mask, 2.0)[0].tolist()
    stated = [
        min(exp(max(x, -20.0)), 2.0) if m else 1.0 for x, m in zip(LOGS, TRAINED, strict=True)
    ]
    logps = torch.tensor([[-0.5]], dtype=torch.float64).requires_grad_()
    loss = sampled_reverse_kl(logps, logps.detach() - 0.8).sum()
    (gradient,) = torch.autograd.grad(loss, logps)
    errors = [a / b - 1 for a, b in zip(ratios, stated, strict=True)]
    return [*errors, loss.item() + 0.4, gradient.item() - 0.8]


def group_errors() -> list[float]:
    """Return 0 for each pair of texts with the groups worked out by hand, else 1.

    The other numbers are errors of a sorted distance, of merged rows and of matched entries.
    """
    distance = sorted_l1(*(torch.tensor([row], dtype=torch.float64) for row in (SORTED, OTHER)))
    wrong = [float(aligned_groups(*ends) != groups) for ends, groups in GROUPS]
    return [*wrong, distance.item() - 0.5, *_merge_errors(), *_match_errors()]


def _merge_errors() -> list[float]:
    """Return the errors of both merges of a group of two tokens and of one of one."""
    rows = torch.tensor([(0.6, 0.4), (0.3, 0.7), (0.1, 0.9)], dtype=torch.float64)
    found = [
        merged(rows, torch.tensor([0, 1, 1]), [[0, 1], [2]], strategy)
        for strategy in ("observed", "bayesian")
    ]
    stated = (((0.42, 0.28), (0.1, 0.9)), ((0.18, 0.42), (0.1, 0.9)))
    return (torch.stack(found) - torch.tensor(stated, dtype=torch.float64)).flatten().tolist()


def _match_errors() -> list[float]:
    """Return the errors of the divergence of matched entries and of the distance of the others."""
    own, other = (torch.tensor([row], dtype=torch.float64) for row in (MERGED, OTHER_MERGED))
    matches, errors = matches_of(TOKENS, OTHER_TOKENS), list[float]()
    for beta in BETAS:
        matched, distance = matched_and_sorted(own, other, matches, beta)
        stated = plain_divergence((0.3, LEAST), (0.4, 0.1), beta)
        errors += [matched.item() - stated, distance.item() - 0.15]
    alone = matched_and_sorted(own, other[:, :2], matches, 1.0)[1]  # no "x"
    return [*errors, alone.item()]


def hint_errors() -> list[float]:
    """Return 0 for each group of answers whose hints are those worked out by hand, else 1."""
    return [
        float(has_hint(torch.tensor(right) > 0, 3, torch.tensor(told) > 0).int().tolist() != stated)
        for right, told, stated in HINTS
    ]
