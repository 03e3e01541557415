"""Laws of a student that is too small for its teacher, by the divergence that it minimises.

The teacher has two modes on a line of points, the student is one Gaussian on them. Its mean and
deviation are the global minimum of D_beta, to a thousandth of the distance of two points.
"""

from functools import cache

import torch
from torch import Tensor

from core.losses.divergence import divergence

POINTS = torch.arange(65, dtype=torch.float64)
MODES = ((20.0, 0.6), (44.0, 0.4))  # place and share of the teacher's modes
SPREAD = 3.2  # deviation of each mode
UNLIKELY = 1e-3
GRID, ZOOMS = 65, 6  # means and deviations of a search, and how often it is narrowed


def gaussian(mean: Tensor, deviation: Tensor) -> Tensor:
    """Return log-probabilities (N, 65) of Gaussians with means and deviations (N,)."""
    return (-((POINTS - mean[:, None]) / deviation[:, None]).square() / 2).log_softmax(-1)


def teacher() -> Tensor:
    """Return the teacher's log-probabilities (1, 65)."""
    places, shares = torch.tensor(MODES, dtype=torch.float64).unbind(1)
    modes = gaussian(places, torch.full_like(places, SPREAD)) + shares.log()[:, None]
    return modes.logsumexp(0, keepdim=True)


@cache
def student(beta: float) -> Tensor:
    """Return the log-probabilities (1, 65) of the Gaussian with the least D_beta."""
    low = torch.tensor([0.0, 0.0], dtype=torch.float64)  # mean, log deviation
    high = torch.tensor([64.0, 4.0], dtype=torch.float64)
    best = low
    for _ in range(ZOOMS):
        ends = torch.stack([low, high], 1).tolist()
        sides = [torch.linspace(a, b, GRID, dtype=torch.float64) for a, b in ends]
        grid = torch.cartesian_prod(*sides)
        means, logs = grid.unbind(1)
        losses = divergence(gaussian(means, logs.exp()), teacher().expand(len(grid), -1), beta)
        best = grid[losses.argmin()]
        width = (high - low) / 8
        low, high = best - width, best + width
    return gaussian(best[:1], best[1:].exp())


def entropy(beta: float) -> float:
    """Return the entropy of the student in nats."""
    return -float((student(beta).exp() * student(beta)).sum())


def teacher_logp(beta: float) -> float:
    """Return the teacher's mean log-probability of the student's samples."""
    return float((student(beta).exp() * teacher()).sum())


def overestimated_mass(beta: float) -> float:
    """Return the student's mass on points to which the teacher gives less than `UNLIKELY`."""
    return float(student(beta).exp()[teacher() < torch.tensor(UNLIKELY).log()].sum())
