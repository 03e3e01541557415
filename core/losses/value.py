"""The loss of a value model, and the share of the variance of returns that it explains."""

import torch

from core.shapes import BT, Mask, Scalar


def clipped_value_loss(values: BT, old_values: BT, returns: BT, width: float) -> BT:
    """Return max((V - R)^2, (clip(V, V_old - w, V_old + w) - R)^2) / 2 of each token.

    It is not in arXiv 1707.06347, but in the code of that paper and in TRL's PPO.
    """
    bounded = torch.max(torch.min(values, old_values + width), old_values - width)
    return 0.5 * torch.max((values - returns).square(), (bounded - returns).square())


def clipped_values(values: BT, old_values: BT, returns: BT, width: float) -> BT:
    """Return 1 for each token whose loss is that of the clipped value, else 0."""
    bounded = torch.max(torch.min(values, old_values + width), old_values - width)
    return ((bounded - returns).square() > (values - returns).square()).to(values.dtype)


def explained_variance(values: BT, returns: BT, mask: Mask) -> Scalar:
    """Return 1 - var(R - V) / var(R) over trained tokens; 0 if all returns are equal."""
    is_trained = mask.bool()
    residuals, trained_returns = (returns - values)[is_trained], returns[is_trained]
    if len(trained_returns) < 2 or torch.isclose(
        trained_returns.var(), trained_returns.new_zeros(())
    ):
        return returns.new_zeros(())
    return 1 - residuals.var() / trained_returns.var()
