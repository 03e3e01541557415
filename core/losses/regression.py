"""Optimal advantage regression: values of prompts under a reference policy, and the loss."""

from math import log

from torch import Tensor

from core.shapes import BT, B, Mask


def optimal_values(rewards: Tensor, beta: float) -> Tensor:
    """Return V* = beta log mean_i exp(r_i / beta) of each row of rewards (N, K).

    arXiv 2505.20686 eq. 5. V* lies between the mean (beta to infinity) and the maximum (beta to 0)
    of the row.
    """
    return beta * ((rewards / beta).logsumexp(1) - log(rewards.size(1)))


def implicit_rewards(logps: BT, ref_logps: BT, mask: Mask, beta: float) -> B:
    """Return beta sum_t log(pi / pi_ref) of each completion (B,)."""
    return beta * ((logps - ref_logps) * mask).sum(1)


def squared_regression(implicit: B, advantages: B) -> B:
    """Return (beta log(pi / pi_ref) - (r - V*))^2 of each completion (B,).

    arXiv 2505.20686 eq. 6.
    """
    return (implicit - advantages).square()
