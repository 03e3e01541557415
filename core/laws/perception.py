"""Laws of PAPO's perception KL, on random log-probabilities with and without the picture."""

import torch
from torch import Tensor

from core.losses.perception import perception_kl

SPREADS = (0.01, 0.3, 3.0)  # of the differences of log-probabilities


def least_terms() -> list[float]:
    """Return the least term of a token, for differences of each of `SPREADS`."""
    return [float(perception_kl(*_logps(spread)).min()) for spread in SPREADS]


def agreement_error() -> float:
    """Return 0 if the term is 0 exactly for tokens of equal log-probability, else infinity.

    For |d| = |log r| up to 1, r - log r - 1 is at least d^2 / 6, so that it is 0 at d = 0 only.
    """
    logps, masked = _logps(SPREADS[1])
    near = (logps - masked).abs() <= 1
    floor = (logps - masked).square()[near] / 6
    elsewhere = (perception_kl(logps, masked)[near] >= floor).all()
    return 0.0 if elsewhere and not perception_kl(logps, logps).any() else float("inf")


def _logps(spread: float) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    logps = -torch.rand(64, 32, generator=draw, dtype=torch.float64) * 5
    return logps, logps + spread * torch.randn(64, 32, generator=draw, dtype=torch.float64)
