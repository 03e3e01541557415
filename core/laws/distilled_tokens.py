"""Laws of which sampled tokens a teacher trains, and how much: hints and places in an answer."""

from itertools import pairwise

import torch

from core.losses.aggregate import Scale, sequence_mean
from core.losses.divergence import divergence, token_divergences
from core.losses.selection import has_hint
from core.losses.token_weights import position_weights

GROUP, TOKENS, VOCABULARY = 4, 3, 5
ANSWERS, LONGEST = 64, 24


def hinted_gradient(successes: int, feedback: int) -> float:
    """Return the norm of the gradient of one group of answers by their logits.

    Args:
        successes: The number of answers that succeed, the first ones.
        feedback: The number of answers with feedback, the last ones.
    """
    draw = torch.Generator().manual_seed(0)
    size = (2, GROUP, TOKENS, VOCABULARY)
    student, teacher = torch.randn(size, generator=draw, dtype=torch.float64)
    place = torch.arange(GROUP)
    is_hinted = has_hint(place < successes, GROUP, place >= GROUP - feedback)
    mask = is_hinted[:, None].double().expand(-1, TOKENS)
    logits = student.requires_grad_()
    losses = token_divergences(logits, teacher, mask, lambda s, t: divergence(s, t, 0.5))
    loss = sequence_mean(losses, mask, Scale(rollout_tokens=mask.sum()))
    (gradient,) = torch.autograd.grad(loss, logits)
    return float(gradient.norm())


def weights(gamma: float) -> list[list[float]]:
    """Return the position weights of answers of several lengths, with the paper's S."""
    draw = torch.Generator().manual_seed(0)
    advantages = torch.randn(ANSWERS, LONGEST, generator=draw, dtype=torch.float64)
    lengths = torch.arange(ANSWERS) % (LONGEST - 1) + 2
    mask = (torch.arange(LONGEST) < lengths[:, None]).double()
    rows = position_weights(advantages, mask, gamma, "without_last")
    return [row[:length].tolist() for row, length in zip(rows, lengths.tolist(), strict=True)]


def rises(gamma: float) -> list[float]:
    """Return how often the weight of a token is above that of the token before it, by answer."""
    return [float(sum(b > a for a, b in pairwise(row))) for row in weights(gamma)]


def end_weights(gamma: float, token: int) -> list[float]:
    """Return the weight of one token of each answer: 0 for the first, -1 for the last."""
    return [row[token] for row in weights(gamma)]
