"""What a policy loss logs of its ratios, under TRL's names where TRL logs it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.losses.surrogate import capped, gamma_weight, mean_gamma_weight
from core.shapes import B1, BT, BT1

RARE = 0.1  # probability of a token, arXiv 2506.13585


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number in the log of a step, under TRL's name.

    It is the mean of `values` over all trained tokens, or their standard deviation with `spread`,
    or where there is an `extreme` that of the means of the completions. Values `per_completion` may
    be one of each, and then count once. `among` are those that count (1), if not all do; where none
    do, nothing is logged.
    """

    name: str
    values: Callable[[Rollout, BT1, PolicyConfig], BT1]
    extreme: Callable[[Tensor], Tensor] | None = None
    per_completion: bool = False
    spread: bool = False
    among: Callable[[Rollout], BT1] | None = None


Share = Callable[[Rollout, BT1, PolicyConfig], BT1]


def clipped_low(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where the lower bound stops the gradient: r < 1 - eps and A < 0."""
    return ((capped(ratio, c) < 1 - c.epsilon) & (r.advantages < 0)).to(ratio.dtype)


def clipped_high(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where the upper bound stops the gradient: r > 1 + eps_high and A > 0."""
    return ((capped(ratio, c) > 1 + c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def log_clipped_low(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:
    """1 where log r < -eps and A < 0."""
    return ((r.log_ratio < -c.epsilon) & (r.advantages < 0)).to(ratio.dtype)


def log_clipped_high(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:
    """1 where log r > eps_high and A > 0."""
    return ((r.log_ratio > c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def share_capped(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """1 where the weight of a gain is capped: r > eps_high and A > 0."""
    return ((ratio > c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def clipping(low: Share, high: Share) -> tuple[Statistic, ...]:
    """What is logged of a lower and an upper bound."""

    def either(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
        return torch.maximum(low(r, ratio, c), high(r, ratio, c))

    return (
        Statistic(name="clip_ratio/low_mean", values=low),
        Statistic(name="clip_ratio/high_mean", values=high),
        Statistic(name="clip_ratio/region_mean", values=either),
        Statistic(name="clip_ratio/low_min", values=low, extreme=torch.min),
        Statistic(name="clip_ratio/high_max", values=high, extreme=torch.max),
    )


def token_log_ratio(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:  # noqa: ARG001 - as of all
    """log(pi / pi_old) of each token."""
    return r.log_ratio


def sequence_log_ratio(r: Rollout, ratio: BT1, c: PolicyConfig) -> B1:  # noqa: ARG001 - as of all
    """The mean of it over each completion: the log of GSPO's ratio."""
    return masked_mean(r.log_ratio, r.mask).unsqueeze(-1)


def has_tokens(r: Rollout) -> B1:
    """1 for completions with a trained token."""
    return r.mask.amax(-1, keepdim=True)


def rise(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:  # noqa: ARG001 - as of all
    """pi - pi_old of each token."""
    return r.logps.exp() - r.old_logps.exp()


def rare_gains(r: Rollout) -> BT:
    """1 for tokens with pi_old < 0.1 and A > 0."""
    return ((r.old_logps < log(RARE)) & (r.advantages > 0)).to(r.logps.dtype)


CLIPPING = clipping(clipped_low, clipped_high)
LOG_CLIPPING = clipping(log_clipped_low, log_clipped_high)
CAPPING = (Statistic(name="cispo_clip_ratio", values=share_capped),)
GAMMA, MEAN_GAMMA = (
    (Statistic(name="vespo/phi_seq_mean", values=phi, per_completion=True),)
    for phi in (gamma_weight, mean_gamma_weight)
)
# How far the policy has moved from that of the rollout, whatever the loss.
DRIFT = (
    Statistic(name="ratio/token_log_std", values=token_log_ratio, spread=True),
    Statistic(
        name="ratio/sequence_log_std",
        values=sequence_log_ratio,
        per_completion=True,
        spread=True,
        among=has_tokens,
    ),
    Statistic(name="ratio/rare_rise", values=rise, among=rare_gains),
)
