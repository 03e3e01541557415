"""The policy loss: ratio -> surrogate -> weights -> KL -> aggregate, each chosen from a table."""

from collections.abc import Callable
from dataclasses import dataclass

from core.losses.aggregate import AGGREGATES, Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.entropy import NORMALIZERS
from core.losses.kl import ESTIMATORS
from core.losses.loss_statistics import (
    CAPPING,
    CLIPPING,
    GAMMA,
    LOG_CLIPPING,
    MEAN_GAMMA,
    Statistic,
)
from core.losses.ratio import RATIOS
from core.losses.surrogate import (
    clipped,
    gamma_weighted,
    gated,
    geometric,
    mean_gamma_weighted,
    reweighted,
)
from core.losses.token_weights import WEIGHTS
from core.shapes import BT, BT1, Scalar


def tight_cap(c: PolicyConfig) -> str | None:
    """Say that delta takes effect inside the clip, where it would leave the upper clip nothing."""
    if c.delta is None or c.delta >= 1 + c.upper_epsilon:
        return None
    return (
        f"delta={c.delta} is below 1 + {c.upper_epsilon}, the upper clip, which then never acts: "
        "set delta above it, or leave it out"
    )


def low_cap(c: PolicyConfig) -> str | None:
    """Say that all weights are capped, those of a policy that has not moved too."""
    if c.upper_epsilon >= 1:
        return None
    return (
        f"loss_type={c.loss_type!r} caps its weights at epsilon_high itself, here at "
        f"{c.upper_epsilon}, so that every weight is below 1: set epsilon_high to 1 plus the width"
    )


def other_level(c: PolicyConfig) -> str | None:
    """Say that the ratio is not the one that the loss is made of, or what `tight_cap` does."""
    level, own = c.importance_sampling_level, LOSS_TYPES[c.loss_type].levels[0]
    if level == own:
        return tight_cap(c)
    return (
        f"loss_type={c.loss_type!r} with importance_sampling_level={level!r} is another loss than "
        f"its paper's: set importance_sampling_level={own!r}"
    )


def no_doubt(c: PolicyConfig) -> str | None:  # noqa: ARG001 - a table row
    """Say nothing."""
    return None


@dataclass(frozen=True, kw_only=True)
class LossType:
    """A row of `LOSS_TYPES`.

    `aggregate` is a key of `AGGREGATES`. `parameters` are the settings that it reads and another
    row may not, `levels` the ratios that it is defined for, its paper's first, `logs` what is
    logged of it. `holds` are keys of `WEIGHTS` that the surrogate has in itself; by the others it
    is multiplied. `doubt` says in one sentence why settings that go together make no sense.
    """

    surrogate: Callable[[Rollout, BT1, PolicyConfig], BT1]
    aggregate: str
    doc: str
    logs: tuple[Statistic, ...] = CLIPPING
    levels: tuple[str, ...] = tuple(RATIOS)
    parameters: tuple[str, ...] = ("epsilon", "epsilon_high", "delta")
    holds: tuple[str, ...] = ()
    doubt: Callable[[PolicyConfig], str | None] = tight_cap

    @property
    def splits(self) -> bool:
        """Whether its own aggregate promises so, see `Aggregate`."""
        return AGGREGATES[self.aggregate].splits

    @property
    def holds_tokens(self) -> bool:
        """Whether the surrogate makes one ratio to the engine's policy of those of the tokens."""
        return "engine_ratio" in self.holds


LOSS_TYPES = {
    "grpo": LossType(
        surrogate=clipped,
        aggregate="sequence_mean",
        doc="the mean over completions of each one's mean",
    ),
    "bnpo": LossType(
        surrogate=clipped,
        aggregate="token_mean",
        doc="the mean over the tokens of a micro-batch",
    ),
    "dr_grpo": LossType(
        surrogate=clipped,
        aggregate="constant_length",
        doc="the sum over tokens by the greatest length, arXiv 2503.20783",
    ),
    "dapo": LossType(
        surrogate=clipped,
        aggregate="global_token_mean",
        doc="the mean over all tokens, arXiv 2503.14476; see `token_normalizer`",
    ),
    "luspo": LossType(
        surrogate=clipped,
        aggregate="token_sum",
        doc="the mean over completions of each one's sum, arXiv 2602.05261",
        levels=("sequence", "token"),
        doubt=other_level,
    ),
    "cispo": LossType(
        surrogate=reweighted,
        aggregate="global_token_mean",
        doc="log-probabilities weighed by the ratio up to `epsilon_high`, arXiv 2506.13585",
        logs=CAPPING,
        parameters=("epsilon_high",),
        doubt=low_cap,
    ),
    "sapo": LossType(
        surrogate=gated,
        aggregate="sequence_mean",
        doc="a soft gate of the ratio, see `sapo_temperature_pos`",
        logs=(),
        parameters=("sapo_temperature_neg", "sapo_temperature_pos"),
        doubt=no_doubt,
    ),
    "vespo": LossType(
        surrogate=gamma_weighted,
        aggregate="global_token_mean",
        doc="log-probabilities weighed by the whole completion's ratio, see `vespo_k_pos`",
        logs=GAMMA,
        levels=("token",),
        parameters=("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"),
        holds=("engine_ratio",),
        doubt=no_doubt,
    ),
    "vespo_mean": LossType(
        surrogate=mean_gamma_weighted,
        aggregate="global_token_mean",
        doc="the same by the geometric mean of the completion's ratios",
        logs=MEAN_GAMMA,
        levels=("token",),
        parameters=("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"),
        holds=("engine_ratio",),
        doubt=no_doubt,
    ),
    "gmpo": LossType(
        surrogate=geometric,
        aggregate="sequence_mean",
        doc="the geometric mean of the ratios of a completion, arXiv 2507.20673",
        logs=LOG_CLIPPING,
        levels=("token",),
        parameters=("epsilon", "epsilon_high"),
        holds=("chosen_by_entropy",),
        doubt=no_doubt,
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

    w is the product of `WEIGHTS`, less those that the surrogate holds.

    The KL is that of `kl_estimator`, times the ratio with `use_bias_correction_kl`, which makes
    the gradient of k3 that of the KL when pi_old sampled the tokens.
    """
    row = LOSS_TYPES[c.loss_type]
    ratio = RATIOS[c.importance_sampling_level].ratio(r)
    kl = kl_penalty(r, ratio, c)
    weighted = row.surrogate(r, ratio, c)
    for name, weight in WEIGHTS.items():
        found = None if name in row.holds else weight(r, c)
        weighted = weighted if found is None else weighted * found
    per_token = (weighted if kl is None else weighted + c.beta * kl).expand_as(r.logps)
    aggregate = AGGREGATES[c.loss_aggregate or row.aggregate].mean
    counted = NORMALIZERS[c.top_entropy_normalizer].counts(r)
    return PolicyLoss(loss=aggregate(per_token, counted, scale), ratio=ratio, kl=kl)


def kl_penalty(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT | None:
    """The KL of each token, or None without a reference."""
    if r.ref_logps is None:
        return None
    plain = ESTIMATORS[c.kl_estimator](r.logps, r.ref_logps)
    return plain * ratio if c.use_bias_correction_kl else plain
