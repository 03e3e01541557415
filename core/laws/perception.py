"""PAPO's perception KL over random log-probabilities with and without the picture."""

import torch
from torch import Tensor

from core.losses.perception import perception_kl

SPREADS = (0.01, 0.3, 3.0)  # of the differences of log-probabilities


def least_terms() -> list[float]:
    """The least term of a token, for differences of each of `SPREADS`."""
    return [float(perception_kl(*_logps(spread)).min()) for spread in SPREADS]


def agreement_errors() -> list[float]:
    """The largest term where both agree, and 0 or more of the largest where they do not.

    The second is max(0, d^2 / 6 - term), as r - log r - 1 is at least d^2 / 6 for |d| = |log r| up
    to 1: a term is 0 nowhere else.
    """
    logps, masked = _logps(0.3)
    near = (logps - masked).abs() <= 1
    lack = ((logps - masked).square() / 6 - perception_kl(logps, masked))[near]
    return [float(perception_kl(logps, logps).abs().max()), max(0.0, float(lack.max()))]


def _logps(spread: float) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    logps = -torch.rand(64, 32, generator=draw, dtype=torch.float64) * 5
    return logps, logps + spread * torch.randn(64, 32, generator=draw, dtype=torch.float64)
