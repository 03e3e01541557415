"""The policy loss: ratio -> surrogate -> KL -> aggregate, each step chosen from a table."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.losses.aggregate import (
    Scale,
    constant_length,
    global_token_mean,
    sequence_mean,
    token_mean,
)
from core.losses.batch import PolicyConfig, Rollout
from core.losses.kl import k3
from core.losses.ratio import RATIOS
from core.losses.surrogate import clipped, clipped_either, clipped_high, clipped_low
from core.shapes import BT, BT1, Mask, Scalar


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number in the log of a step, under TRL's name.

    It is the mean of `values` over all trained tokens, or where there is an `extreme` that of the
    means of the completions.
    """

    name: str
    values: Callable[[Rollout, BT1, PolicyConfig], BT1]
    extreme: Callable[[Tensor], Tensor] | None = None


CLIPPING = (
    Statistic(name="clip_ratio/low_mean", values=clipped_low),
    Statistic(name="clip_ratio/high_mean", values=clipped_high),
    Statistic(name="clip_ratio/region_mean", values=clipped_either),
    Statistic(name="clip_ratio/low_min", values=clipped_low, extreme=torch.min),
    Statistic(name="clip_ratio/high_max", values=clipped_high, extreme=torch.max),
)


@dataclass(frozen=True, kw_only=True)
class LossType:
    """A row of `LOSS_TYPES`.

    `parameters` are the settings that it reads and another row may not, `levels` the ratios that it
    is defined for, `logs` what is logged of it. `splits` promises that loss and gradient do not
    depend on how an optimizer step's completions are split into micro-batches. A surrogate with
    `corrects_sampling` has the ratio to the engine's policy in itself; others are multiplied by it.
    """

    surrogate: Callable[[Rollout, BT1, PolicyConfig], BT1]
    aggregate: Callable[[BT, Mask, Scale], Scalar]
    doc: str
    logs: tuple[Statistic, ...] = CLIPPING
    levels: tuple[str, ...] = tuple(RATIOS)
    parameters: tuple[str, ...] = ("epsilon", "epsilon_high", "delta")
    splits: bool = True
    corrects_sampling: bool = False

    @property
    def counts_tokens(self) -> bool:
        """Whether it divides by the tokens of a rollout."""
        return "token_normalizer" in self.parameters


LOSS_TYPES = {
    "grpo": LossType(
        surrogate=clipped,
        aggregate=sequence_mean,
        doc="the mean over completions of each one's mean",
    ),
    "bnpo": LossType(
        surrogate=clipped,
        aggregate=token_mean,
        doc="the mean over the tokens of a micro-batch",
        splits=False,
    ),
    "dr_grpo": LossType(
        surrogate=clipped,
        aggregate=constant_length,
        doc="the sum over tokens by the greatest length, arXiv 2503.20783",
    ),
    "dapo": LossType(
        surrogate=clipped,
        aggregate=global_token_mean,
        doc="the mean over all tokens, arXiv 2503.14476; see `token_normalizer`",
        parameters=("epsilon", "epsilon_high", "delta", "token_normalizer"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """The loss of a micro-batch and what its metrics are made of."""

    loss: Scalar
    ratio: BT1
    kl: BT | None


def policy_loss(r: Rollout, c: PolicyConfig, scale: Scale) -> PolicyLoss:
    """aggregate(w * surrogate(r, ratio) + beta * kl); arXiv 2402.03300 eq. 3, where w = 1.

    w is `sampling_ratio`, which corrects for an engine with another policy, unless the surrogate
    does so itself.

    The KL is k3, times the ratio with `use_bias_correction_kl`, which makes its gradient that of
    the KL when pi_old sampled the tokens.
    """
    row = LOSS_TYPES[c.loss_type]
    ratio = RATIOS[c.importance_sampling_level].ratio(r)
    kl = kl_penalty(r, ratio, c)
    surrogate = row.surrogate(r, ratio, c)
    correction = None if row.corrects_sampling else r.sampling_ratio
    weighted = surrogate if correction is None else surrogate * correction
    per_token = (weighted if kl is None else weighted + c.beta * kl).expand_as(r.logps)
    return PolicyLoss(loss=row.aggregate(per_token, r.mask, scale), ratio=ratio, kl=kl)


def kl_penalty(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT | None:
    """k3 per token, or None without a reference."""
    if r.ref_logps is None:
        return None
    plain = k3(r.logps, r.ref_logps)
    return plain * ratio if c.use_bias_correction_kl else plain
