"""A law of the largest advantage under each deviation that may divide it."""

from collections.abc import Sequence

import torch

from core.losses.advantages import AGGREGATIONS


def largest_advantage(scale: str, rights: Sequence[int], group: int = 8) -> float:
    """Return max |A| of a batch of groups, the i-th with `rights[i]` rewards of 1, the rest 0."""
    rewards = [[1.0] * right + [0.0] * (group - right) for right in rights]
    flat = torch.tensor(rewards, dtype=torch.float64).reshape(-1, 1)
    weights = torch.ones(1, dtype=torch.float64)
    advantages = AGGREGATIONS["sum_then_normalize"].combine(flat, weights, group, scale)
    return float(advantages.values.abs().max())
