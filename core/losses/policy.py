"""The policy loss: ratio -> surrogate -> KL -> aggregate, each step chosen from a table."""

from collections.abc import Callable
from dataclasses import dataclass

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
from core.losses.surrogate import clipped
from core.shapes import BT, BT1, Mask, Scalar


@dataclass(frozen=True)
class LossType:
    """A row of `LOSS_TYPES`.

    `splits` promises that loss and gradient do not depend on how an optimizer step's completions
    are split into micro-batches. `counts_tokens`: it divides by the tokens of a rollout.
    """

    surrogate: Callable[[Rollout, BT1, PolicyConfig], BT1]
    aggregate: Callable[[BT, Mask, Scale], Scalar]
    splits: bool = True
    counts_tokens: bool = False


LOSS_TYPES = {
    "grpo": LossType(clipped, sequence_mean),
    "bnpo": LossType(clipped, token_mean, splits=False),
    "dr_grpo": LossType(clipped, constant_length),
    "dapo": LossType(clipped, global_token_mean, counts_tokens=True),
}


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """The loss of a micro-batch and what its metrics are made of."""

    loss: Scalar
    ratio: BT1
    kl: BT | None


def policy_loss(r: Rollout, c: PolicyConfig, scale: Scale) -> PolicyLoss:
    """aggregate(w * surrogate(r, ratio) + beta * kl); arXiv 2402.03300 eq. 3, where w = 1.

    w is `sampling_ratio`, which corrects for an engine with another policy.

    The KL is k3, times the ratio with `use_bias_correction_kl`, which makes its gradient that of
    the KL when pi_old sampled the tokens.
    """
    row = LOSS_TYPES[c.loss_type]
    ratio = RATIOS[c.importance_sampling_level](r)
    kl = kl_penalty(r, ratio, c)
    surrogate = row.surrogate(r, ratio, c)
    weighted = surrogate if r.sampling_ratio is None else surrogate * r.sampling_ratio
    per_token = (weighted if kl is None else weighted + c.beta * kl).expand_as(r.logps)
    return PolicyLoss(loss=row.aggregate(per_token, r.mask, scale), ratio=ratio, kl=kl)


def kl_penalty(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT | None:
    """k3 per token, or None without a reference."""
    if r.ref_logps is None:
        return None
    plain = k3(r.logps, r.ref_logps)
    return plain * ratio if c.use_bias_correction_kl else plain
