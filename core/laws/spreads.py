"""How large advantages become by the deviation that divides them."""

from collections.abc import Sequence

import torch

from core.losses.advantages import AGGREGATIONS


def largest_advantage(scale: str, rights: Sequence[int], group: int = 8) -> float:
    """max |A| of a batch of groups with so many right answers each: rewards 1 and 0."""
    rewards = [[1.0] * right + [0.0] * (group - right) for right in rights]
    flat = torch.tensor(rewards, dtype=torch.float64).reshape(-1, 1)
    one = torch.ones(1, dtype=torch.float64)
    found = AGGREGATIONS["sum_then_normalize"].combine(flat, one, group, scale)
    return float(found.values.abs().max())
