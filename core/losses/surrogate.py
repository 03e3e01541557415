"""Surrogate objectives: what is minimised at each token, before any mean."""

import torch

from core.losses.batch import PolicyConfig, Rollout
from core.shapes import BT1


def capped(ratio: BT1, c: PolicyConfig) -> BT1:
    """min(r, delta) if delta is set; the upper bound of two-sided clipping, arXiv 2505.07291."""
    return ratio if c.delta is None else ratio.clamp(max=c.delta)


def clipped(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """-min(r A, clip(r, 1 - eps, 1 + eps_high) A); r first capped at delta if it is set.

    arXiv 2402.03300 eq. 3; the two clip widths are arXiv 2503.14476 eq. 10.
    """
    bounded = ratio.clamp(1 - c.epsilon, 1 + c.upper_epsilon)
    return -torch.min(capped(ratio, c) * r.advantages, bounded * r.advantages)


def clipped_low(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where the lower bound stops the gradient: r < 1 - eps and A < 0."""
    return ((capped(ratio, c) < 1 - c.epsilon) & (r.advantages < 0)).to(ratio.dtype)


def clipped_high(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where the upper bound stops the gradient: r > 1 + eps_high and A > 0."""
    return ((capped(ratio, c) > 1 + c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def clipped_either(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where either bound stops the gradient."""
    return torch.maximum(clipped_low(r, ratio, c), clipped_high(r, ratio, c))
