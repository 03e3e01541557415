"""Factors without gradient that multiply the surrogate of a token, as a table of functions."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.shapes import B1, BT, BT1, Mask

LARGEST_LOG = 20.0  # of a ratio


def near_policy(r: Rollout, c: PolicyConfig) -> BT1 | None:
    """Return 0 where A < 0 and mean_t log(pi_sampler / pi) > threshold, else 1; arXiv 2512.02556.

    The sampler is the engine if its log-probabilities are known, else the policy at the time of the
    rollout. A token without a log-probability of the engine counts as equally likely under both.
    Without a threshold the result is None.
    """
    if c.off_policy_mask_threshold is None:
        return None
    sampler = r.old_logps if r.sampling_logps is None else r.sampling_logps
    is_kept = is_near(r.advantages, r.logps, sampler, r.mask, c.off_policy_mask_threshold)
    return is_kept.to(r.logps.dtype)


def is_near(advantages: BT1, logps: BT, sampler: BT, mask: Mask, threshold: float) -> Tensor:
    """Return A >= 0 or mean_t log(pi_sampler / pi) <= threshold, for each completion or token."""
    drift = (sampler - logps.detach()).nan_to_num(nan=0.0)
    near = masked_mean(drift, mask).unsqueeze(-1) <= threshold
    return (advantages >= 0) | near


def chosen_by_entropy(r: Rollout, c: PolicyConfig) -> BT1 | None:  # noqa: ARG001 - a table row
    """Return 1 on tokens that are selected by their entropy, else 0; arXiv 2506.01939 eq. 6.

    The result is None if all tokens are selected.
    """
    return None if r.entropy_mask is None else r.entropy_mask.to(r.logps.dtype)


def engine_ratio(r: Rollout, c: PolicyConfig) -> BT1 | None:  # noqa: ARG001 - as above
    """Return pi_old over the engine's policy with limits applied; None without a correction."""
    return r.sampling_ratio


def clipped_ratio(logps: BT, old_logps: BT | None, limit: float | None) -> BT:
    """Return min(pi / pi_old, limit) of each token without gradient; 1 without a limit.

    arXiv 2601.20802. The logarithm of the ratio is between -20 and 20.
    """
    if old_logps is None or limit is None:
        return torch.ones_like(logps)
    ratio = (logps - old_logps).detach().clamp(-LARGEST_LOG, LARGEST_LOG).exp()
    return ratio.clamp(max=limit)


def position_weights(
    advantages: BT,
    mask: Mask,
    gamma: float,
    total: str,
    *,
    epsilon: float = 1e-8,
    signed: bool = False,
) -> BT:
    """Return w_t = 1 + gamma (1 - S_t / S) without gradient, S_t = sum_{k < t} |A_k|; (B, T).

    arXiv 2606.22600 algorithm 1. The weights of a completion fall from 1 + gamma at its first
    trained token. Advantages of other tokens are not read; a token behind the last one has the
    weight that a next token would have.

    Args:
        advantages: A (B, T).
        mask: 1 on trained tokens.
        gamma: The weight of a first token above 1.
        total: A key of `TOTALS`, what S is a sum over; the least S is `epsilon`.
        epsilon: see `total`.
        signed: Whether S_t is |sum_{k < t} A_k|, in which both signs cancel, and S as it is.
    """
    trained = torch.where(mask.bool(), advantages.detach(), 0.0)
    sizes = trained.abs()
    sums = trained.cumsum(1).abs() if signed else sizes.cumsum(1)
    before = nn.functional.pad(sums[:, :-1], (1, 0))
    return 1 + gamma * (1 - before / TOTALS[total](sizes, mask).clamp(min=epsilon))


def without_last(sizes: BT, mask: Mask) -> B1:
    """Return the sum of each row without its last trained token."""
    last = mask.cumsum(1).argmax(1, keepdim=True)
    return sizes.sum(1, keepdim=True) - sizes.gather(1, last)


def of_all(sizes: BT, mask: Mask) -> B1:  # noqa: ARG001 - a table row
    """Return the sum of each row."""
    return sizes.sum(1, keepdim=True)


TOTALS: dict[str, Callable[[BT, Mask], B1]] = {
    "without_last": without_last,  # arXiv 2606.22600: the last weight is 1
    "all": of_all,  # as TRL does
}


def capped_ratio(log_ratio: BT, mask: Mask, cap: float) -> BT:
    """Return min(exp(clamp(log r, -20, 20)), cap) without gradient, and 1 beside trained tokens.

    The logarithm is masked before its exponential; arXiv 2601.20802.
    """
    trained = torch.where(mask.bool(), log_ratio.detach(), 0.0)
    return trained.clamp(-LARGEST_LOG, LARGEST_LOG).exp().clamp(max=cap)


WEIGHTS: dict[str, Callable[[Rollout, PolicyConfig], BT1 | None]] = {
    "near_policy": near_policy,
    "chosen_by_entropy": chosen_by_entropy,
    "engine_ratio": engine_ratio,
}
