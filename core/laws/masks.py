"""Laws of a mask of off-policy completions: the gradient of what it leaves out of the loss."""

import torch
from torch import Tensor

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss

ADVANTAGES = (-2.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.0)
DRIFTS = (-1.0, -0.2, 0.0, 0.2, 0.49, 0.51, 1.0, 3.0)  # mean log(pi_old / pi), nats a token
SPREAD = (-0.3, 0.1, 0.2)  # of the tokens of a completion about that mean


def wrongly_treated(threshold: float) -> float:
    """Count the completions that are masked or kept against the rule of arXiv 2512.02556 eq. 9.

    The rule masks a completion with A < 0 and a mean log(pi_old / pi) above the threshold. A masked
    completion must have no gradient, and a kept one the gradient of the loss without the mask.
    """
    wrong = 0
    for advantage in ADVANTAGES:
        for drift in DRIFTS:
            is_masked = advantage < 0 and drift > threshold
            unmasked = completion_gradient(advantage, drift)
            masked = completion_gradient(advantage, drift, off_policy_mask_threshold=threshold)
            wrong += not torch.equal(masked, torch.zeros_like(unmasked) if is_masked else unmasked)
    return float(wrong)


def gradient_of_masked(threshold: float, beta: float) -> float:
    """Return the largest |gradient| of a token in a masked completion, with a KL weight `beta`."""
    drift = max(DRIFTS)
    by_token = completion_gradient(-1.0, drift, off_policy_mask_threshold=threshold, beta=beta)
    return float(by_token.abs().max())


def completion_gradient(advantage: float, drift: float, **settings: float) -> Tensor:
    """Return d loss / d log pi, shape (1, T), of a completion with this mean log(pi_old / pi)."""
    old = torch.tensor([[-1.0, -2.0, -0.5]], dtype=torch.float64)
    spread = torch.tensor([SPREAD], dtype=torch.float64)
    logps = (old - drift - spread).requires_grad_()
    completion = Rollout(
        logps=logps,
        old_logps=old,
        ref_logps=old - 0.1 if settings.get("beta") else None,
        advantages=torch.full((1, 1), advantage, dtype=torch.float64),
        mask=torch.ones_like(old),
    )
    # so wide a clip that only the mask can take a gradient away
    config = PolicyConfig(epsilon=0.99, epsilon_high=100.0, **settings)  # pyright: ignore[reportArgumentType] - any of its fields
    loss = policy_loss(completion, config, Scale(rollout_tokens=torch.tensor(3.0))).loss
    return torch.autograd.grad(loss, logps)[0]
