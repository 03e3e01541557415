"""Laws of the clipped surrogate of PPO, on a grid of ratios and advantages of both signs."""

import torch
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.ratio import RATIOS
from core.losses.surrogate import clipped_surrogate

EPSILON = 0.2
RATIO = (0.05, 0.5, 0.79, 0.81, 0.95, 1.0, 1.05, 1.19, 1.21, 1.5, 4.0)
ADVANTAGES = (-2.0, -1.0, 1.0, 0.5)


def bound_gap(epsilon: float = EPSILON) -> list[float]:
    """Return the clipped objective minus the one without a clip, r A, at each point of the grid."""
    logps, advantages = _grid()
    plain = logps.exp() * advantages
    return (_objective(logps, advantages, epsilon) - plain).flatten().tolist()


def gradients(epsilon: float = EPSILON) -> list[float]:
    """Return the gradient of the clipped objective by log r, at each point of the grid."""
    logps, advantages = _grid()
    (by_log_ratio,) = torch.autograd.grad(_objective(logps, advantages, epsilon).sum(), logps)
    return by_log_ratio.flatten().tolist()


def expected_gradients(epsilon: float = EPSILON) -> list[float]:
    """Return 0 where A > 0 and r > 1 + epsilon or A < 0 and r < 1 - epsilon, else r A."""
    return [
        0.0 if (r > 1 + epsilon if a > 0 else r < 1 - epsilon) else r * a
        for a in ADVANTAGES
        for r in RATIO
    ]


def _grid() -> tuple[Tensor, Tensor]:
    logps = torch.tensor([RATIO] * len(ADVANTAGES), dtype=torch.float64).log().requires_grad_()
    return logps, torch.tensor(ADVANTAGES, dtype=torch.float64).unsqueeze(1)


def _objective(logps: Tensor, advantages: Tensor, epsilon: float) -> Tensor:
    answers = Rollout(
        logps=logps,
        old_logps=torch.zeros_like(logps),
        advantages=advantages,
        mask=torch.ones_like(logps),
    )
    return -clipped_surrogate(
        answers, RATIOS["token"].ratio(answers), PolicyConfig(epsilon=epsilon)
    )
