"""Laws of the gradient of KL estimators on policy, compared with that of the KL."""

import torch

from core.laws.kl_variance import POLICIES
from core.losses.kl import ESTIMATORS


def gradient_errors(estimator: str) -> list[float]:
    """Return |E[gradient of the estimator] - gradient of KL(policy || reference)| by the logits.

    There is one number for each pair of `POLICIES`. Answers are sampled from the policy, and the
    gradient does not pass through their probabilities.
    """
    return [_gradient_error(estimator, *pair) for pair in POLICIES]


def _gradient_error(
    estimator: str, policy: tuple[float, ...], reference: tuple[float, ...]
) -> float:
    logits = torch.tensor([policy], dtype=torch.float64).log().requires_grad_()
    reference_logps = torch.tensor([reference], dtype=torch.float64).log()
    logps = logits.log_softmax(-1)
    probabilities = logps.detach().exp()
    expected = (probabilities * ESTIMATORS[estimator](logps, reference_logps)).sum()
    kl = (logps.exp() * (logps - reference_logps)).sum()
    (estimated,) = torch.autograd.grad(expected, logits, retain_graph=True)
    (exact,) = torch.autograd.grad(kl, logits)
    return float((estimated - exact).norm())
