"""Advantages of tokens from rewards of tokens: with a KL in them, discounted, against values.

What a later token is paid counts for those before it. Tokens that are not trained on, such as those
of an environment, are passed over: they neither discount nor have a value.
"""

import torch

from core.shapes import BT, B, Mask

STABILISER = 1e-8  # added to the variance, as TRL's and verl's PPO do


def with_kl(outcomes: B, kl: BT, mask: Mask, beta: float) -> BT:
    """r_t = 1[t = T] r - beta kl_t, where T is the last trained token; arXiv 2501.03262 s3."""
    last = mask.cumsum(1).argmax(1, keepdim=True)
    return (-beta * kl).scatter_add(1, last, outcomes.unsqueeze(1)) * mask


def to_go(rewards: BT, mask: Mask, gamma: float = 1.0) -> BT:
    """R_t = sum over s >= t of gamma ** (s - t) r_s."""
    return gae(rewards, torch.zeros_like(rewards), mask, gamma=gamma, lam=1.0)


def gae(rewards: BT, values: BT, mask: Mask, *, gamma: float, lam: float) -> BT:
    """A_t = sum over l of (gamma lam) ** l delta_{t+l}; arXiv 1506.02438 eq. 16.

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t), where V is 0 behind the last token.
    """
    ahead = value_ahead = torch.zeros_like(rewards[:, 0])
    found = torch.zeros_like(rewards)
    for t in reversed(range(rewards.size(1))):
        trained = mask[:, t].bool()
        delta = rewards[:, t] + gamma * value_ahead - values[:, t]
        ahead = torch.where(trained, delta + gamma * lam * ahead, ahead)
        value_ahead = torch.where(trained, values[:, t], value_ahead)
        found[:, t] = ahead * trained
    return found


def gae_of_two(
    outcomes: BT,
    penalties: BT,
    values: BT,
    mask: Mask,
    *,
    gamma: float,
    penalty_gamma: float,
    lam: float,
) -> BT:
    """`gae` of two rewards with a discount each; V is that of the first; arXiv 2502.03373 s4.4.

    At lam = 1 that is sum_l gamma ** l r_{t+l} + sum_l penalty_gamma ** l p_{t+l} - V(s_t).
    """
    nothing = torch.zeros_like(values)
    return gae(outcomes, values, mask, gamma=gamma, lam=lam) + gae(
        penalties, nothing, mask, gamma=penalty_gamma, lam=lam
    )


def whitened(x: BT, mask: Mask) -> BT:
    """(x - mean) / std over all trained tokens; 0 elsewhere; arXiv 2501.03262 s3."""
    kept = x[mask.bool()]
    variance = kept.var() if len(kept) > 1 else torch.zeros_like(x[0, 0])
    return (x - kept.mean()) * torch.rsqrt(variance + STABILISER) * mask
