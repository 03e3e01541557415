"""Laws of importance weights for tokens that another policy sampled: exact expectations.

The vocabulary has three or four tokens. The policy is trained by the project's loss at ratio 1 with
the weights of `core.losses.sampling`; expectations are sums over the vocabulary.
"""

from itertools import product

import torch
from torch import Tensor

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss
from core.losses.sampling import Correction, sampling_ratio

Policies = tuple[tuple[float, ...], tuple[float, ...]]

# Pairs (policy, sampler): the first two are near; in the others some token is sampled less than
# half as often as by the policy, in the last four less than a fifth as often.
PAIRS: tuple[Policies, ...] = (
    ((0.50, 0.30, 0.20), (0.48, 0.31, 0.21)),
    ((0.40, 0.30, 0.20, 0.10), (0.30, 0.20, 0.30, 0.20)),
    ((0.60, 0.30, 0.10), (0.25, 0.50, 0.25)),
    ((0.70, 0.20, 0.10), (0.10, 0.35, 0.55)),
    ((0.40, 0.30, 0.20, 0.10), (0.05, 0.15, 0.30, 0.50)),
    ((0.90, 0.05, 0.03, 0.02), (0.10, 0.30, 0.30, 0.30)),
    ((0.55, 0.25, 0.15, 0.05), (0.01, 0.04, 0.15, 0.80)),
)
FAR = PAIRS[3:]
RATIOS = (0.01, 0.1, 0.3, 0.49, 0.51, 0.7, 1.0, 1.5, 2.0, 3.0, 4.99, 5.01, 10.0, 100.0)


def worst_bias(mode: str | None = None, **limits: float) -> list[float]:
    """Return the largest error of the expected gradient over all advantages, for each of `PAIRS`.

    The error is linear in the advantages of the tokens: the result is its largest norm over vectors
    of advantages of norm 1.

    Args:
        mode: of the weights, a row of `MODES`; None for no weights.
        limits: `clip_min` and `clip_max`.
    """
    biases: list[float] = []
    for policy, sampler in PAIRS:
        unbiased = columns(policy, policy, None)
        weights = None if mode is None else correction(mode, **limits)
        error = columns(policy, sampler, weights) - unbiased
        biases.append(float(torch.linalg.matrix_norm(error, ord=2)))
    return biases


def change_when_equal(mode: str, **limits: float) -> list[float]:
    """Return the largest change that weights make to the gradient if the sampler is the policy."""
    return [
        float((columns(p, p, correction(mode, **limits)) - columns(p, p, None)).abs().max())
        for p, _ in PAIRS
    ]


def gradient_variance(mode: str, **limits: float) -> list[float]:
    """Return the variance of one token's gradient for each of `FAR`, the mean over all A of +-1."""
    variances: list[float] = []
    for policy, sampler in FAR:
        chances = torch.tensor(sampler, dtype=torch.float64)
        per_token = columns(policy, sampler, correction(mode, **limits)) / chances
        signs = torch.tensor(list(product((-1.0, 1.0), repeat=len(policy))), dtype=torch.float64)
        gradients = signs.unsqueeze(1) * per_token  # (signs, logits, tokens)
        mean = (gradients * chances).sum(-1, keepdim=True)
        variances.append(float(((gradients - mean).square() * chances).sum((1, 2)).mean()))
    return variances


def second_moment(mode: str, **limits: float) -> list[float]:
    """Return E[W^2] of the weight W under the sampler, for each of `FAR`."""
    moments: list[float] = []
    for policy, sampler in FAR:
        pi, mu = (torch.tensor([side], dtype=torch.float64) for side in (policy, sampler))
        weight = sampling_ratio(pi.log(), mu.log(), torch.ones_like(pi), correction(mode, **limits))
        moments.append(float((mu * weight.square()).sum()))
    return moments


def weights(mode: str, low: float, high: float) -> list[float]:
    """Return the factor of a token's gradient at each of the `RATIOS` of policy to sampler."""
    return [weight(ratio, mode, low, high) for ratio in RATIOS]


def ratios_within(low: float, high: float) -> list[float]:
    """Return `RATIOS` with 0 in place of those outside the limits."""
    return [ratio if low <= ratio <= high else 0.0 for ratio in RATIOS]


def weight(ratio: float, mode: str, low: float, high: float) -> float:
    """Return the factor of a token's gradient at this ratio of policy to sampler."""
    logps = torch.full((1, 1), -2.0, dtype=torch.float64)
    sampling = logps - torch.tensor(ratio, dtype=torch.float64).log()
    weighted = gradient(logps, sampling, correction(mode, clip_min=low, clip_max=high))
    return (weighted / gradient(logps, sampling, None)).item()


def correction(mode: str, **limits: float) -> Correction:
    """Return a row of `MODES` with these limits; a limit that is not given is open."""
    bounds: dict[str, float | None] = {"clip_min": None, "clip_max": None, **limits}
    return Correction(mode=mode, **bounds)


def columns(policy: tuple[float, ...], sampler: tuple[float, ...], c: Correction | None) -> Tensor:
    """Return the expected gradients by the logits, (V, V): column i for A = 1 of token i only."""
    gradients: list[Tensor] = []
    for token, chance in enumerate(sampler):
        logits = torch.tensor(policy, dtype=torch.float64).log().requires_grad_()
        logps = logits.log_softmax(-1)[token].reshape(1, 1)
        sampling = torch.full((1, 1), chance, dtype=torch.float64).log()
        loss = chance * sampled_loss(logps, sampling, c)
        gradients.append(torch.autograd.grad(loss, logits)[0])
    return torch.stack(gradients, dim=1)


def gradient(logps: Tensor, sampling: Tensor, c: Correction | None) -> Tensor:
    """Return d loss / d log pi of one token with A = 1, shape (1, 1)."""
    policy = logps.clone().requires_grad_()
    return torch.autograd.grad(sampled_loss(policy, sampling, c), policy)[0]


def sampled_loss(logps: Tensor, sampling: Tensor, c: Correction | None) -> Tensor:
    """Return the policy loss of one token with A = 1 at ratio 1, weighed by the correction."""
    old, mask = logps.detach(), torch.ones(1, 1)
    token = Rollout(
        logps=logps,
        old_logps=old,
        advantages=torch.ones(1, 1, dtype=torch.float64),
        mask=mask,
        sampling_ratio=None if c is None else sampling_ratio(old, sampling, mask, c),
    )
    return policy_loss(token, PolicyConfig(), Scale(rollout_tokens=torch.tensor(1.0))).loss
