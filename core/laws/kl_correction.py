"""The KL to a reference, estimated from tokens of an older policy: exact expectations.

With u = reference / policy and rho = policy / older one, E_old[rho k3] is KL(policy || reference),
and so is its gradient; arXiv 2512.02556. Without rho the value is another one as soon as the policy
has moved, and the gradient is one even before. rho is a token's own: the mean ratio of a completion
in its place does not do it.
"""

import torch
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import kl_penalty
from core.losses.ratio import RATIOS

# (policy, the one that sampled, reference): categorical distributions.
MOVED = (
    ((0.50, 0.30, 0.20), (0.45, 0.33, 0.22), (0.40, 0.30, 0.30)),
    ((0.70, 0.20, 0.10), (0.60, 0.25, 0.15), (0.20, 0.50, 0.30)),
    ((0.25, 0.25, 0.25, 0.25), (0.30, 0.20, 0.30, 0.20), (0.10, 0.20, 0.30, 0.40)),
    ((0.02, 0.49, 0.49), (0.30, 0.30, 0.40), (0.60, 0.20, 0.20)),
)
STILL = tuple((policy, policy, reference) for policy, _, reference in MOVED)
FAR_BELOW = (1.0, 0.1, 1e-3, 1e-6)  # rho of tokens that the reference makes 1e4 times as likely


def value_error(*, corrected: bool) -> list[float]:
    """|expected estimate - KL| where the policy has moved since."""
    found: list[float] = []
    for policy, old, reference in MOVED:
        logits = torch.tensor(policy, dtype=torch.float64).log()
        error = expected(logits, old, reference, corrected=corrected) - true_kl(logits, reference)
        found.append(float(error.abs()))
    return found


def gradient_error(*, corrected: bool) -> list[float]:
    """|expected gradient - gradient of the KL| by the logits, moved and not."""
    found: list[float] = []
    for policy, old, reference in MOVED + STILL:
        logits = torch.tensor(policy, dtype=torch.float64).log().requires_grad_()
        estimate = expected(logits, old, reference, corrected=corrected)
        error = estimate - true_kl(logits, reference)
        found.append(float(torch.autograd.grad(error, logits)[0].square().sum().sqrt()))
    return found


def gradient_far_below(*, corrected: bool) -> list[float]:
    """|d estimate / d log pi| of a token with u = 1e4, at each rho of `FAR_BELOW`."""
    found: list[float] = []
    for rho in FAR_BELOW:
        old = torch.full((1, 1), -2.0, dtype=torch.float64)
        logps = (old + torch.tensor(rho, dtype=torch.float64).log()).requires_grad_()
        reference = logps.detach() + torch.tensor(1e4, dtype=torch.float64).log()
        estimate = penalty(logps, old, reference, corrected=corrected).sum()
        found.append(float(torch.autograd.grad(estimate, logps)[0].abs()))
    return found


def expected(
    logits: Tensor, old: tuple[float, ...], reference: tuple[float, ...], *, corrected: bool
) -> Tensor:
    """The sum over all tokens of their chance under `old` times their estimate."""
    logps = logits.log_softmax(-1).unsqueeze(1)
    olds, refs = (torch.tensor(side, dtype=torch.float64).unsqueeze(1) for side in (old, reference))
    return (olds * penalty(logps, olds.log(), refs.log(), corrected=corrected)).sum()


def true_kl(logits: Tensor, reference: tuple[float, ...]) -> Tensor:
    """KL(policy || reference)."""
    logps = logits.log_softmax(-1)
    return (logps.exp() * (logps - torch.tensor(reference, dtype=torch.float64).log())).sum()


def penalty(logps: Tensor, old: Tensor, reference: Tensor, *, corrected: bool) -> Tensor:
    """`kl_penalty` of completions of one token."""
    tokens = Rollout(
        logps=logps,
        old_logps=old,
        ref_logps=reference,
        advantages=torch.zeros_like(old),
        mask=torch.ones_like(old),
    )
    found = kl_penalty(
        tokens, RATIOS["token"].ratio(tokens), PolicyConfig(use_bias_correction_kl=corrected)
    )
    return torch.zeros_like(old) if found is None else found
