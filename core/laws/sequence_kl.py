"""Laws of gradients of the reverse KL of sequences, by enumeration of all sequences of few tokens.

A policy has a row of logits for each prefix. A pair is a student and a teacher with drawn logits.
"""

from functools import cache

import torch
from torch import Tensor

from core.losses.divergence import kl
from core.losses.returns import later_rewards

TOKENS, LENGTH, PAIRS = 3, 3, 200
PREFIXES = sum(TOKENS**t for t in range(LENGTH))
SEQUENCES = torch.cartesian_prod(*[torch.arange(TOKENS)] * LENGTH)


def prefixes() -> Tensor:
    """Return the row of each prefix of all sequences, shape (27, 3)."""
    rows = torch.zeros_like(SEQUENCES)
    for t in range(1, LENGTH):
        rows[:, t] = rows[:, t - 1] * TOKENS + SEQUENCES[:, t - 1] + 1
    return rows


def policies() -> tuple[Tensor, Tensor]:
    """Return the logits of all students and their teachers, each of shape (pairs, prefixes, 3)."""
    draw = torch.Generator().manual_seed(0)
    size = (2, PAIRS, PREFIXES, TOKENS)
    student, teacher = torch.randn(size, generator=draw, dtype=torch.float64)
    return student.requires_grad_(), teacher


def sampled_losses(estimator: str, logps: Tensor, teacher_logps: Tensor) -> Tensor:
    """Return the loss of each sampled sequence (pairs, 27), from log-probabilities by prefix.

    Args:
        estimator: "reinforce" weighs each token with all rewards from it on, "single_step" with
            those after it, beside the KL at each prefix; "token" is this KL alone.
        logps: The student's (pairs, prefixes, 3), with gradient.
        teacher_logps: The teacher's.
    """
    rows = prefixes()
    student, teacher = (x[:, rows, SEQUENCES].flatten(0, 1) for x in (logps, teacher_logps))
    rewards = (teacher - student).detach()
    is_sampled = estimator == "reinforce"
    returns = later_rewards(rewards, torch.ones_like(rewards), gamma=1.0, has_own=is_sampled)
    sampled = -(returns * student).sum(1).view(len(logps), -1)
    pair = (x.flatten(0, 1) for x in (logps, teacher_logps))
    exact = kl(*pair).view(len(logps), -1)[:, rows].sum(-1)
    return {"reinforce": sampled, "single_step": exact + sampled, "token": exact}[estimator]


@cache
def gradients(estimator: str) -> tuple[Tensor, Tensor]:
    """Return the gradient of each sequence (pairs, 27, logits), and its chance (pairs, 27)."""
    logits, teacher = policies()
    logps = logits.log_softmax(-1)
    losses = sampled_losses(estimator, logps, teacher.log_softmax(-1))
    columns = [
        torch.autograd.grad(column.sum(), logits, retain_graph=True)[0].flatten(1)
        for column in losses.unbind(1)
    ]
    return torch.stack(columns, 1), logps.detach()[:, prefixes(), SEQUENCES].sum(-1).exp()


def sequence_gradients() -> Tensor:
    """Return the gradients of KL(student || teacher) over all sequences (pairs, logits)."""
    logits, teacher = policies()
    student, other = (
        x.log_softmax(-1)[:, prefixes(), SEQUENCES].sum(-1) for x in (logits, teacher)
    )
    (gradient,) = torch.autograd.grad(kl(student, other).sum(), logits)
    return gradient.flatten(1)


def gradient_errors(estimator: str) -> list[float]:
    """Return |expected gradient - that of the sequence KL| / |that of the KL| of each pair."""
    by_sequence, chances = gradients(estimator)
    exact = sequence_gradients()
    error = (chances[..., None] * by_sequence).sum(1) - exact
    return (error.norm(dim=1) / exact.norm(dim=1)).tolist()


def variances(estimator: str) -> Tensor:
    """Return the expected squared distance of a gradient from its mean for each pair (pairs,)."""
    by_sequence, chances = gradients(estimator)
    mean = (chances[..., None] * by_sequence).sum(1, keepdim=True)
    return (chances * (by_sequence - mean).square().sum(-1)).sum(1)


def variance_ratios() -> list[float]:
    """Return the variance of "single_step" over that of "reinforce" for each pair."""
    return (variances("single_step") / variances("reinforce")).tolist()


def mean_variance_ratio() -> float:
    """Return the mean of `variance_ratios`."""
    ratios = variance_ratios()
    return sum(ratios) / len(ratios)
