"""Means over the tokens that a mask keeps, and statistics that leave out NaN."""

import torch
from torch import Tensor

from core.shapes import BT, Mask


def masked_mean(x: BT, mask: Mask) -> Tensor:
    """Mean of each row over its kept tokens (B,), 0 for a row with none."""
    return (x * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)


def nanstd(x: Tensor, dim: int | None = None, *, keepdim: bool = False) -> Tensor:
    """Sample standard deviation (divisor n - 1) of the values that are not NaN.

    NaN where fewer than two values remain.
    """
    n = (~x.isnan()).sum(dim=dim, keepdim=True)
    centred = x - x.nanmean(dim=dim, keepdim=True)
    variance = centred.square().nanmean(dim=dim, keepdim=True) * (n / (n - 1))
    std = torch.where(n > 1, variance, torch.nan).sqrt()
    if keepdim:
        return std
    return std.reshape(()) if dim is None else std.squeeze(dim)
