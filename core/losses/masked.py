"""Means over masked tokens, and statistics that ignore NaN."""

import torch
from torch import Tensor

from core.shapes import BT, Mask


def masked_mean(x: BT, mask: Mask) -> Tensor:
    """Return the mean of each row over the tokens with mask 1 (B,); 0 for a row without any."""
    return (x * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)


def nanstd(x: Tensor, dim: int | None = None, *, keepdim: bool = False) -> Tensor:
    """Return the sample standard deviation (divisor n - 1) of the values that are not NaN.

    The result is NaN where fewer than two values remain.
    """
    n = (~x.isnan()).sum(dim=dim, keepdim=True)
    centred = x - x.nanmean(dim=dim, keepdim=True)
    variance = centred.square().nanmean(dim=dim, keepdim=True) * (n / (n - 1))
    std = torch.where(n > 1, variance, torch.nan).sqrt()
    if keepdim:
        return std
    return std.reshape(()) if dim is None else std.squeeze(dim)
