"""The loss of a value model, and how much of the returns it explains."""

import torch

from core.shapes import BT, Mask, Scalar


def clipped_value_loss(values: BT, old_values: BT, returns: BT, width: float) -> BT:
    """max((V - R)^2, (clip(V, V_old - w, V_old + w) - R)^2) / 2 of each token.

    Not in arXiv 1707.06347; it is that of its code and of TRL's PPO.
    """
    bounded = torch.max(torch.min(values, old_values + width), old_values - width)
    return 0.5 * torch.max((values - returns).square(), (bounded - returns).square())


def clipped_values(values: BT, old_values: BT, returns: BT, width: float) -> BT:
    """1 where the clip decides on the loss."""
    bounded = torch.max(torch.min(values, old_values + width), old_values - width)
    return ((bounded - returns).square() > (values - returns).square()).to(values.dtype)


def explained(values: BT, returns: BT, mask: Mask) -> Scalar:
    """1 - var(R - V) / var(R) over trained tokens; 0 where all returns are equal."""
    kept = mask.bool()
    left, whole = (returns - values)[kept], returns[kept]
    if len(whole) < 2 or torch.isclose(whole.var(), whole.new_zeros(())):
        return returns.new_zeros(())
    return 1 - left.var() / whole.var()
