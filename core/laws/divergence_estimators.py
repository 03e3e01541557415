"""Laws of the divergence of a token: estimators of the reverse KL at a prefix, and scales by beta.

A prefix is a pair of distributions of the next token, with logits of the student and the teacher.
"""

import torch
from torch import Tensor

from core.losses.divergence import divergence, sampled_reverse_kl

PREFIXES, VOCABULARY = 64, 6
STUDENT = ((1.0, 0.0, -1.0), (0.2, 0.3, 0.5))
TEACHER = ((0.5, 1.0, -0.5), (2.0, 0.0, -1.0))


def mean_divergence(beta: float) -> float:
    """Return the mean D_beta of two tokens with logits `STUDENT` and `TEACHER`."""
    student, teacher = (
        torch.tensor(x, dtype=torch.float64).log_softmax(-1) for x in (STUDENT, TEACHER)
    )
    return divergence(student, teacher, beta).mean().item()


def gradients(estimator: str) -> tuple[Tensor, Tensor]:
    """Return the gradients of one estimator at each prefix, and the chance of each.

    Args:
        estimator: "sampled" is the loss of a token that the student samples, "full" the reverse KL
            over the vocabulary, which is the same for each sampled token.

    Returns:
        The gradient by the logits for each sampled token (N, V, V), and the student's probability
        of the token (N, V).
    """
    draw = torch.Generator().manual_seed(0)
    size = (2, PREFIXES, VOCABULARY)
    student, teacher = torch.randn(size, generator=draw, dtype=torch.float64) * 2
    logits = student.requires_grad_()
    logps, teacher_logps = logits.log_softmax(-1), teacher.log_softmax(-1)
    losses = (
        sampled_reverse_kl(logps, teacher_logps)
        if estimator == "sampled"
        else divergence(logps, teacher_logps, 1.0)[:, None].expand_as(logps)
    )
    rows = [
        torch.autograd.grad(losses[:, v].sum(), logits, retain_graph=True)[0]
        for v in range(VOCABULARY)
    ]
    return torch.stack(rows, 1), logps.detach().exp()


def mean_gradient(estimator: str) -> Tensor:
    """Return the expected gradient at each prefix (N, V)."""
    by_token, chances = gradients(estimator)
    return (chances[..., None] * by_token).sum(1)


def mean_errors() -> list[float]:
    """Return |expected sampled gradient - full gradient| / |full gradient| at each prefix."""
    full = mean_gradient("full")
    errors = (mean_gradient("sampled") - full).norm(dim=1) / full.norm(dim=1)
    return errors.tolist()


def variances(estimator: str) -> list[float]:
    """Return the expected squared distance of a gradient from its mean at each prefix."""
    by_token, chances = gradients(estimator)
    distances = by_token - mean_gradient(estimator)[:, None]
    return (chances * distances.square().sum(-1)).sum(1).tolist()
