"""Losses of single answers that are labelled desirable or not, by their rewards and a shift."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool
from torch import Tensor

from core.losses.divergence_scores import log_sigmoid
from core.shapes import B

Labels: TypeAlias = Bool[Tensor, "B"]


def saturating(margins: B) -> B:
    """Return 1 - sigma(m) of margins m; arXiv 2402.01306 eq. 8 with lambda = 1."""
    return torch.sigmoid(-margins)


def logistic(margins: B) -> B:
    """Return -log sigma(m) of margins m; arXiv 2404.04656."""
    return -log_sigmoid(margins)


def baseline(total: float, count: float) -> float:
    """Return z0 = max(0, the mean of log(pi / pi_ref)) of answers to other prompts, in nats.

    The estimate of KL(pi, pi_ref) of arXiv 2402.01306.

    Args:
        total: Sum of the log-ratios of the mismatched answers.
        count: Number of mismatched answers.
    """
    return max(0.0, total / count)


@dataclass(frozen=True, kw_only=True)
class Unpaired:
    """A row of `UNPAIRED`: the loss of each labelled answer.

    Attributes:
        link: Maps margins (B,) to losses (B,).
        doc: One line of documentation.
        has_shift: Whether it has a shift of rewards that other answers make.
        needs_mismatches: Whether its shift is beta times the `baseline` of mismatched answers.
    """

    link: Callable[[B], B]
    doc: str
    has_shift: bool = True
    needs_mismatches: bool = False


UNPAIRED = {
    "kto": Unpaired(link=saturating, doc="KTO, arXiv 2402.01306", needs_mismatches=True),
    "apo_zero_unpaired": Unpaired(
        link=saturating, doc="APO-zero of single answers, arXiv 2408.06266", has_shift=False
    ),
    "bco": Unpaired(link=logistic, doc="BCO, arXiv 2404.04656"),
}


def unpaired_losses(
    loss_type: str, rewards: B, labels: Labels, *, shift: float, weights: B | None = None
) -> B:
    """Return the loss of each answer.

    The margin of a desirable answer is r - shift with its reward r = beta log(pi / pi_ref), that of
    an undesirable one shift - r.

    Args:
        loss_type: Name of a row of `UNPAIRED`.
        rewards: Rewards with gradient.
        labels: True for desirable answers.
        shift: Reward that counts as neither gain nor loss: beta z0 of KTO, delta of BCO.
        weights: Factors of the losses; None is 1 for each.
    """
    signs = torch.where(labels, 1.0, -1.0).to(rewards.dtype)
    losses = UNPAIRED[loss_type].link(signs * (rewards - shift))
    return losses if weights is None else weights.to(losses) * losses
