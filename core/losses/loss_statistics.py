"""Statistics of the ratios that a policy loss logs, under TRL's names where TRL logs them."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.losses.surrogate import cap_ratio, gamma_weight, mean_gamma_weight
from core.shapes import B1, BT, BT1

RARE = 0.1  # probability of a token, arXiv 2506.13585


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number in the log of a step: a statistic of values of tokens or completions.

    It is the mean of the values over all trained tokens, unless `extreme` or `spread` is set.

    Attributes:
        name: Its name in the log, TRL's if TRL has it.
        values: Maps a rollout, its ratio and the settings to one value per token or completion.
        extreme: Reduces the means of the completions to one number, for example `torch.min`.
        per_completion: Whether values of shape (B, 1) count once for each completion, not for each
            token.
        spread: Whether the standard deviation is logged instead of the mean.
        subset: Returns the mask (1 or 0) of the values that count; if none does, nothing is logged.
    """

    name: str
    values: Callable[[Rollout, BT1, PolicyConfig], BT1]
    extreme: Callable[[Tensor], Tensor] | None = None
    per_completion: bool = False
    spread: bool = False
    subset: Callable[[Rollout], BT1] | None = None


Share = Callable[[Rollout, BT1, PolicyConfig], BT1]


def clipped_low(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return 1 where the lower bound stops the gradient (r < 1 - eps and A < 0), else 0."""
    return ((cap_ratio(ratio, c) < 1 - c.epsilon) & (r.advantages < 0)).to(ratio.dtype)


def clipped_high(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return 1 where the upper bound stops the gradient (r > 1 + eps_high and A > 0), else 0."""
    return ((cap_ratio(ratio, c) > 1 + c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def log_clipped_low(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:
    """Return 1 where the rollout's log-ratio is below -eps and A < 0, else 0 (B, T).

    Of `ratio` only the dtype is used. The mask is not applied.
    """
    return ((r.log_ratio < -c.epsilon) & (r.advantages < 0)).to(ratio.dtype)


def log_clipped_high(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:
    """Return 1 where the rollout's log-ratio is above eps_high and A > 0, else 0 (B, T).

    Of `ratio` only the dtype is used. The mask is not applied.
    """
    return ((r.log_ratio > c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def share_capped(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return 1 where CISPO's weight of a positive advantage is capped (r > eps_high), else 0."""
    return ((ratio > c.upper_epsilon) & (r.advantages > 0)).to(ratio.dtype)


def clipping(low: Share, high: Share) -> tuple[Statistic, ...]:
    """Return the statistics of a lower and upper clip, given functions that mark clipped tokens."""

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
    """Return log(pi / pi_old) of each token (B, T)."""
    return r.log_ratio


def sequence_log_ratio(r: Rollout, ratio: BT1, c: PolicyConfig) -> B1:  # noqa: ARG001 - as of all
    """Return the mean of log(pi / pi_old) over each completion (B, 1): the log of GSPO's ratio."""
    return masked_mean(r.log_ratio, r.mask).unsqueeze(-1)


def has_tokens(r: Rollout) -> B1:
    """Return 1 for completions with a trained token, else 0 (B, 1)."""
    return r.mask.amax(-1, keepdim=True)


def probability_rise(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT:  # noqa: ARG001 - as of all
    """Return pi - pi_old of each token (B, T)."""
    return r.logps.exp() - r.old_logps.exp()


def rare_gains(r: Rollout) -> BT:
    """Return 1 for tokens with pi_old < 0.1 and A > 0, else 0 (B, T)."""
    return ((r.old_logps < log(RARE)) & (r.advantages > 0)).to(r.logps.dtype)


CLIPPING = clipping(clipped_low, clipped_high)
LOG_CLIPPING = clipping(log_clipped_low, log_clipped_high)
CAPPING = (Statistic(name="cispo_clip_ratio", values=share_capped),)
GAMMA, MEAN_GAMMA = (
    (Statistic(name="vespo/phi_seq_mean", values=phi, per_completion=True),)
    for phi in (gamma_weight, mean_gamma_weight)
)
# How far the policy has moved from that of the rollout; logged with every loss.
DRIFT = (
    Statistic(name="ratio/token_log_std", values=token_log_ratio, spread=True),
    Statistic(
        name="ratio/sequence_log_std",
        values=sequence_log_ratio,
        per_completion=True,
        spread=True,
        subset=has_tokens,
    ),
    Statistic(name="ratio/rare_rise", values=probability_rise, subset=rare_gains),
)
