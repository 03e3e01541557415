"""Factors without gradient that multiply the surrogate of a token, as a table of functions."""

from collections.abc import Callable

from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.shapes import BT, BT1, Mask


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


WEIGHTS: dict[str, Callable[[Rollout, PolicyConfig], BT1 | None]] = {
    "near_policy": near_policy,
    "chosen_by_entropy": chosen_by_entropy,
    "engine_ratio": engine_ratio,
}
