"""Advantages of tokens from rewards of tokens: KL in the reward, discounting, and values.

The reward of a token counts for all tokens before it. Tokens that are not trained, such as those of
an environment, are skipped: they do not discount and have no value.
"""

import torch

from core.shapes import BT, B, Mask

STABILISER = 1e-8  # added to the variance, as TRL's and verl's PPO do


def with_kl(outcomes: B, kl: BT, mask: Mask, beta: float) -> BT:
    """Return r_t = 1[t = T] r - beta kl_t, with T the last trained token; arXiv 2501.03262 s3."""
    last = mask.cumsum(1).argmax(1, keepdim=True)
    return (-beta * kl).scatter_add(1, last, outcomes.unsqueeze(1)) * mask


def reward_to_go(rewards: BT, mask: Mask, gamma: float = 1.0) -> BT:
    """Return the reward to go R_t = sum_{s >= t} gamma ** (s - t) r_s of each token (B, T)."""
    return gae(rewards, torch.zeros_like(rewards), mask, gamma=gamma, lam=1.0)


def later_rewards(rewards: BT, mask: Mask, *, gamma: float, has_own: bool) -> BT:
    """Return sum_{s > t} gamma ** (s - t) r_s of each token (B, T), plus r_t with `has_own`."""
    own = 0.0 if has_own else rewards * mask
    return reward_to_go(rewards, mask, gamma) - own


def mean_of_later_rewards(rewards: BT, mask: Mask, *, gamma: float, has_own: bool) -> BT:
    """Return the mean of the rewards from each token on, weighted by gamma ** (s - t) (B, T).

    arXiv 2306.08543 s2.2, which leaves out the token's own reward. The mean of no reward is 0.
    """
    weights = later_rewards(torch.ones_like(rewards), mask, gamma=gamma, has_own=has_own)
    total = later_rewards(rewards, mask, gamma=gamma, has_own=has_own)
    return torch.where(weights > 0, total / weights, 0.0)


def gae(rewards: BT, values: BT, mask: Mask, *, gamma: float, lam: float) -> BT:
    """Return A_t = sum over l of (gamma lam) ** l delta_{t+l}; arXiv 1506.02438 eq. 16.

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t), where V is 0 behind the last token.
    """
    ahead = value_ahead = torch.zeros_like(rewards[:, 0])
    advantages = torch.zeros_like(rewards)
    for t in reversed(range(rewards.size(1))):
        trained = mask[:, t].bool()
        delta = rewards[:, t] + gamma * value_ahead - values[:, t]
        ahead = torch.where(trained, delta + gamma * lam * ahead, ahead)
        value_ahead = torch.where(trained, values[:, t], value_ahead)
        advantages[:, t] = ahead * trained
    return advantages


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
    """Return the sum of `gae` of two rewards, each with its own discount; arXiv 2502.03373 s4.4.

    The values V are those of the first reward. At lam = 1 the result is sum_l gamma ** l r_{t+l} +
    sum_l penalty_gamma ** l p_{t+l} - V(s_t).
    """
    no_values = torch.zeros_like(values)
    return gae(outcomes, values, mask, gamma=gamma, lam=lam) + gae(
        penalties, no_values, mask, gamma=penalty_gamma, lam=lam
    )


def whiten(x: BT, mask: Mask) -> BT:
    """Return (x - mean) / std over all trained tokens, and 0 on the others; arXiv 2501.03262 s3."""
    trained = x[mask.bool()]
    variance = trained.var() if len(trained) > 1 else torch.zeros_like(x[0, 0])
    return (x - trained.mean()) * torch.rsqrt(variance + STABILISER) * mask
