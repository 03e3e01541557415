"""What the surrogate of a token is multiplied by, without gradient: a table of functions."""

from collections.abc import Callable

from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.shapes import BT, BT1, Mask


def near_policy(r: Rollout, c: PolicyConfig) -> BT1 | None:
    """0 where A < 0 and mean_t log(pi_sampler / pi) > threshold, else 1; arXiv 2512.02556.

    The sampler is the engine, or pi at rollout. A token of which the engine said nothing counts as
    equal.
    """
    if c.off_policy_mask_threshold is None:
        return None
    sampler = r.old_logps if r.sampling_logps is None else r.sampling_logps
    kept = is_near(r.advantages, r.logps, sampler, r.mask, c.off_policy_mask_threshold)
    return kept.to(r.logps.dtype)


def is_near(advantages: BT1, logps: BT, sampler: BT, mask: Mask, threshold: float) -> Tensor:
    """A >= 0 or mean_t log(pi_sampler / pi) <= threshold, of each completion or token."""
    drift = (sampler - logps.detach()).nan_to_num(nan=0.0)
    near = masked_mean(drift, mask).unsqueeze(-1) <= threshold
    return (advantages >= 0) | near


def chosen_by_entropy(r: Rollout, c: PolicyConfig) -> BT1 | None:  # noqa: ARG001 - a table row
    """1 on the tokens that are kept; arXiv 2506.01939 eq. 6."""
    return None if r.kept is None else r.kept.to(r.logps.dtype)


def engine_ratio(r: Rollout, c: PolicyConfig) -> BT1 | None:  # noqa: ARG001 - as above
    """pi_old over the engine's policy, within bounds."""
    return r.sampling_ratio


WEIGHTS: dict[str, Callable[[Rollout, PolicyConfig], BT1 | None]] = {
    "near_policy": near_policy,
    "chosen_by_entropy": chosen_by_entropy,
    "engine_ratio": engine_ratio,
}
