"""Laws of a sampler that differs from the policy, by enumeration of all answers of a few steps.

A step is right or wrong: with probability p of the policy and q of the sampler, independently of
the other steps. An answer of T steps is rewarded with 1 if all steps are right.
"""

from itertools import product
from math import comb

import torch

from core.laws.gradients import gradient
from core.losses.batch import PolicyConfig, Rollout
from core.losses.sampling import Correction, sampling_ratio

PAIRS = ((0.5, 0.55), (0.6, 0.68), (0.7, 0.62), (0.9, 0.8))  # p, q
UNBOUNDED = {"token": "token_truncate", "sequence": "sequence_truncate"}


def biases(level: str, steps: int) -> list[float]:
    """Return |expected gradient - true gradient| / |true gradient| for each of `PAIRS`.

    The gradient is by the logit of p, its expectation over the sampler's answers.

    Args:
        level: "token" weighs each step by its own ratio, "sequence" by that of its answer.
        steps: of an answer.
    """
    return [_bias(level, steps, p, q) for p, q in PAIRS]


def _bias(level: str, steps: int, p: float, q: float) -> float:
    right = torch.tensor(list(product((0.0, 1.0), repeat=steps)), dtype=torch.float64)
    rewards = right.prod(1, keepdim=True)
    logit = torch.tensor(p, dtype=torch.float64).logit().requires_grad_()
    policy, sampler = (
        _logps(right, logit.sigmoid()),
        _logps(right, torch.tensor(q, dtype=torch.float64)),
    )
    true = torch.autograd.grad((policy.sum(1).exp() @ rewards).sum(), logit, retain_graph=True)[0]
    still = policy.detach()
    r = Rollout(
        logps=policy.detach().requires_grad_(),
        old_logps=still,
        advantages=sampler.sum(1, keepdim=True).exp() * rewards * len(right),
        mask=torch.ones_like(still),
        sampling_ratio=_ratio(level, still, sampler),
    )
    by_token = -gradient(r, PolicyConfig(loss_type="dr_grpo"))[1] * steps  # a sum over the steps
    expected = torch.autograd.grad(policy, logit, by_token)[0]
    return float((expected / true - 1).abs())


def growth_of_variance(level: str, steps: int, from_steps: int) -> list[float]:
    """Return the variance of a weight at `steps` over that at `from_steps`, for each of `PAIRS`."""
    return [_variance(level, steps, *pair) / _variance(level, from_steps, *pair) for pair in PAIRS]


def _variance(level: str, steps: int, p: float, q: float) -> float:
    policy, sampler, shares = _by_count(steps, p, q)
    weights = _ratio(level, policy, sampler)
    squares = (weights - 1).square().mean(1)  # the mean weight under the sampler is 1
    return float((shares * squares).sum())


def kept(mode: str, low: float, high: float, steps: int) -> list[float]:
    """Return the share of the sampler's answers of `steps` steps that a mask keeps, for each pair.

    Args:
        mode: of the mask, a row of `core.losses.sampling.MODES`.
        low: the least ratio that is kept.
        high: the greatest ratio that is kept.
        steps: of an answer.
    """
    bounds = Correction(mode=mode, clip_min=low, clip_max=high)
    kept_shares: list[float] = []
    for p, q in PAIRS:
        policy, sampler, count_shares = _by_count(steps, p, q)
        weights = sampling_ratio(policy, sampler, torch.ones_like(policy), bounds)
        kept_shares.append(float((count_shares * (weights != 0).double().amax(1)).sum()))
    return kept_shares


def _ratio(level: str, policy: torch.Tensor, sampler: torch.Tensor) -> torch.Tensor:
    """Return the sampling ratio of each step, without bounds."""
    bounds = Correction(mode=UNBOUNDED[level], clip_max=None)
    return sampling_ratio(policy, sampler, torch.ones_like(policy), bounds)


def _by_count(steps: int, p: float, q: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return one answer for each number of right steps, and the share of each number.

    The first two tensors (T + 1, T) are the log-probabilities of its steps under the policy and the
    sampler, the third (T + 1,) the sampler's share of answers with that number of right steps.
    """
    right = torch.tril(torch.ones(steps + 1, steps, dtype=torch.float64), diagonal=-1)
    policy, sampler = (_logps(right, torch.tensor(x, dtype=torch.float64)) for x in (p, q))
    orders = torch.tensor([float(comb(steps, k)) for k in range(steps + 1)], dtype=torch.float64)
    return policy, sampler, orders * sampler.sum(1).exp()


def _logps(right: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
    return torch.where(right == 1, chance.log(), (1 - chance).log())
