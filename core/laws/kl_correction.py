"""Laws of the KL to a reference, estimated from tokens of an older policy: exact expectations.

With u = reference / policy and rho = policy / older policy, E_old[rho k3] is KL(policy ||
reference), and its gradient is that of the KL; arXiv 2512.02556. Without rho the value is biased
once the policy has moved, and the gradient is biased even before. rho is the ratio of each token:
the mean ratio of its completion does not remove the bias.
"""

import torch
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import kl_penalty
from core.losses.ratio import RATIOS

# (policy, policy that sampled, reference): categorical distributions.
MOVED = (
    ((0.50, 0.30, 0.20), (0.45, 0.33, 0.22), (0.40, 0.30, 0.30)),
    ((0.70, 0.20, 0.10), (0.60, 0.25, 0.15), (0.20, 0.50, 0.30)),
    ((0.25, 0.25, 0.25, 0.25), (0.30, 0.20, 0.30, 0.20), (0.10, 0.20, 0.30, 0.40)),
    ((0.02, 0.49, 0.49), (0.30, 0.30, 0.40), (0.60, 0.20, 0.20)),
)
STILL = tuple((policy, policy, reference) for policy, _, reference in MOVED)
FAR_BELOW = (1.0, 0.1, 1e-3, 1e-6)  # rho of tokens that the reference makes 1e4 times as likely


def value_error(*, corrected: bool) -> list[float]:
    """Return |expected estimate - KL| for each of `MOVED`, where the policy has moved since."""
    errors: list[float] = []
    for policy, old, reference in MOVED:
        logits = torch.tensor(policy, dtype=torch.float64).log()
        error = expected_penalty(logits, old, reference, corrected=corrected) - true_kl(
            logits, reference
        )
        errors.append(float(error.abs()))
    return errors


def gradient_error(*, corrected: bool) -> list[float]:
    """Return |expected gradient - gradient of the KL| by the logits, for `MOVED` and `STILL`."""
    errors: list[float] = []
    for policy, old, reference in MOVED + STILL:
        logits = torch.tensor(policy, dtype=torch.float64).log().requires_grad_()
        estimate = expected_penalty(logits, old, reference, corrected=corrected)
        error = estimate - true_kl(logits, reference)
        errors.append(float(torch.autograd.grad(error, logits)[0].square().sum().sqrt()))
    return errors


def gradient_far_below(*, corrected: bool) -> list[float]:
    """Return |d estimate / d log pi| of a token with u = 1e4, at each rho of `FAR_BELOW`."""
    sizes: list[float] = []
    for rho in FAR_BELOW:
        old = torch.full((1, 1), -2.0, dtype=torch.float64)
        logps = (old + torch.tensor(rho, dtype=torch.float64).log()).requires_grad_()
        reference = logps.detach() + torch.tensor(1e4, dtype=torch.float64).log()
        estimate = penalty(logps, old, reference, corrected=corrected).sum()
        sizes.append(float(torch.autograd.grad(estimate, logps)[0].abs()))
    return sizes


def expected_penalty(
    logits: Tensor, old: tuple[float, ...], reference: tuple[float, ...], *, corrected: bool
) -> Tensor:
    """Return the KL estimate's expectation over the tokens of the policy `old`, a scalar."""
    logps = logits.log_softmax(-1).unsqueeze(1)
    olds, refs = (torch.tensor(side, dtype=torch.float64).unsqueeze(1) for side in (old, reference))
    return (olds * penalty(logps, olds.log(), refs.log(), corrected=corrected)).sum()


def true_kl(logits: Tensor, reference: tuple[float, ...]) -> Tensor:
    """Return KL(policy || reference), a scalar, for the policy with these logits."""
    logps = logits.log_softmax(-1)
    return (logps.exp() * (logps - torch.tensor(reference, dtype=torch.float64).log())).sum()


def penalty(logps: Tensor, old: Tensor, reference: Tensor, *, corrected: bool) -> Tensor:
    """Return `kl_penalty` of completions of one token, the shape of `old`."""
    tokens = Rollout(
        logps=logps,
        old_logps=old,
        ref_logps=reference,
        advantages=torch.zeros_like(old),
        mask=torch.ones_like(old),
    )
    per_token = kl_penalty(
        tokens, RATIOS["token"].ratio(tokens), PolicyConfig(use_bias_correction_kl=corrected)
    )
    return torch.zeros_like(old) if per_token is None else per_token
