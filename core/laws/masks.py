"""Completions that a mask leaves out of a loss: what is left of their gradient."""

import torch
from torch import Tensor

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss

ADVANTAGES = (-2.0, -1.0, -0.1, 0.0, 0.1, 1.0, 2.0)
DRIFTS = (-1.0, -0.2, 0.0, 0.2, 0.49, 0.51, 1.0, 3.0)  # mean log(pi_old / pi), nats a token
SPREAD = (-0.3, 0.1, 0.2)  # of the tokens of a completion about that mean


def wrongly_treated(threshold: float) -> float:
    """Completions that are left out against the rule, or kept against it; arXiv 2512.02556 eq. 9.

    The rule: A < 0 and a mean log(pi_old / pi) above the threshold leaves a completion out. One is
    kept if the loss has a gradient, or the one without the mask has none.
    """
    wrong = 0
    for advantage in ADVANTAGES:
        for drift in DRIFTS:
            out = advantage < 0 and drift > threshold
            plain = completion_gradient(advantage, drift)
            found = completion_gradient(advantage, drift, off_policy_mask_threshold=threshold)
            wrong += not torch.equal(found, torch.zeros_like(plain) if out else plain)
    return float(wrong)


def gradient_of_masked(threshold: float, beta: float) -> float:
    """The greatest |gradient| of a token of a completion that is left out, with a KL of `beta`."""
    drift = max(DRIFTS)
    found = completion_gradient(-1.0, drift, off_policy_mask_threshold=threshold, beta=beta)
    return float(found.abs().max())


def completion_gradient(advantage: float, drift: float, **settings: float) -> Tensor:
    """d loss / d log pi of the tokens of one completion that has drifted; (1, T)."""
    old = torch.tensor([[-1.0, -2.0, -0.5]], dtype=torch.float64)
    moved = torch.tensor([SPREAD], dtype=torch.float64)
    logps = (old - drift - moved).requires_grad_()
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
