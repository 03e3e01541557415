"""The gradient of KL estimators on policy, against that of the KL, by enumeration."""

import torch

from core.laws.kl_variance import POLICIES
from core.losses.kl import ESTIMATORS


def gradient_errors(estimator: str) -> list[float]:
    """|E[gradient of the estimator] - gradient of KL(policy || reference)| by the logits.

    For each pair of `POLICIES`; the answers are drawn from the policy, which has no gradient there.
    """
    return [_gradient_error(estimator, *pair) for pair in POLICIES]


def _gradient_error(
    estimator: str, policy: tuple[float, ...], reference: tuple[float, ...]
) -> float:
    logits = torch.tensor([policy], dtype=torch.float64).log().requires_grad_()
    other = torch.tensor([reference], dtype=torch.float64).log()
    logps = logits.log_softmax(-1)
    drawn = logps.detach().exp()
    expected = (drawn * ESTIMATORS[estimator](logps, other)).sum()
    kl = (logps.exp() * (logps - other)).sum()
    (one,) = torch.autograd.grad(expected, logits, retain_graph=True)
    (exact,) = torch.autograd.grad(kl, logits)
    return float((one - exact).norm())
