"""Bias-corrected exponential moving average of a weight over a training; arXiv 2508.00180."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class WeightAverage:
    """Average of one weight over a training.

    Attributes:
        start: The weight when averaging started (theta_0).
        ema: Its moving average.
        bema: The corrected average.
    """

    start: Tensor
    ema: Tensor
    bema: Tensor

    @classmethod
    def of(cls, weight: Tensor, device: torch.device | None = None) -> "WeightAverage":
        """Return the average that starts at a weight, on a device, in 32 bits or more."""
        dtype = torch.promote_types(weight.dtype, torch.float32)
        start = weight.detach().to(device=device, dtype=dtype, copy=True)
        return cls(start=start, ema=start.clone(), bema=start.clone())

    def update(self, weight: Tensor, *, ema_weight: float, bias_weight: float) -> None:
        """Add the current weight theta, in place.

        EMA <- (1 - beta) EMA + beta theta and BEMA = EMA + alpha (theta - theta_0).

        Args:
            weight: theta.
            ema_weight: beta.
            bias_weight: alpha.
        """
        new = weight.detach().to(self.ema)
        self.ema.mul_(1 - ema_weight).add_(new, alpha=ema_weight)
        torch.add(self.ema, new - self.start, alpha=bias_weight, out=self.bema)
