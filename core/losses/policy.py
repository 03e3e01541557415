"""The policy loss: ratio, surrogate, weights, KL and aggregate, each chosen from a table."""

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
    cispo_surrogate,
    clipped_surrogate,
    gmpo_surrogate,
    mean_vespo_surrogate,
    sapo_surrogate,
    vespo_surrogate,
)
from core.losses.token_weights import WEIGHTS
from core.shapes import BT, BT1, Scalar


def delta_warning(c: PolicyConfig) -> str | None:
    """Return a warning if `delta` is below the upper clip, which then never acts; else None."""
    if c.delta is None or c.delta >= 1 + c.upper_epsilon:
        return None
    return (
        f"delta={c.delta} is below the upper clip, 1 + {c.upper_epsilon}, which therefore never "
        "acts: set delta above it, or leave it out"
    )


def cispo_cap_warning(c: PolicyConfig) -> str | None:
    """Return a warning if CISPO's cap is below 1, which caps even ratios of 1; else None."""
    if c.upper_epsilon >= 1:
        return None
    return (
        f"loss_type={c.loss_type!r} caps its weights at epsilon_high itself, here at "
        f"{c.upper_epsilon}, so that every weight is below 1: set epsilon_high to 1 plus the width"
    )


def ratio_level_warning(c: PolicyConfig) -> str | None:
    """Return a warning if the ratio is not that of the paper, else that of `delta_warning`."""
    level, paper_level = c.importance_sampling_level, LOSS_TYPES[c.loss_type].levels[0]
    if level == paper_level:
        return delta_warning(c)
    return (
        f"loss_type={c.loss_type!r} with importance_sampling_level={level!r} is not the loss of "
        f"its paper: set importance_sampling_level={paper_level!r}"
    )


def no_warning(c: PolicyConfig) -> str | None:  # noqa: ARG001 - a table row
    """Return None: any combination of settings is meaningful."""
    return None


@dataclass(frozen=True, kw_only=True)
class LossType:
    """A row of `LOSS_TYPES`: a surrogate, its aggregate, and the settings that belong to them.

    Attributes:
        surrogate: Maps rollout, ratio and settings to the loss of each token or completion.
        aggregate: A key of `AGGREGATES`.
        doc: One line of documentation.
        logs: Statistics that are logged of the ratio.
        levels: Keys of `RATIOS` that the loss is defined for; that of its paper comes first.
        parameters: Names of the settings that have an effect with this loss.
        holds: Keys of `WEIGHTS` that the surrogate already contains; the loss is multiplied by the
            others.
        doubt: Returns a warning about settings that make no sense together, or None.
    """

    surrogate: Callable[[Rollout, BT1, PolicyConfig], BT1]
    aggregate: str
    doc: str
    logs: tuple[Statistic, ...] = CLIPPING
    levels: tuple[str, ...] = tuple(RATIOS)
    parameters: tuple[str, ...] = ("epsilon", "epsilon_high", "delta")
    included_weights: tuple[str, ...] = ()
    warning: Callable[[PolicyConfig], str | None] = delta_warning

    @property
    def split_invariant(self) -> bool:
        """True if its aggregate is independent of micro-batching, see `Aggregate`."""
        return AGGREGATES[self.aggregate].split_invariant

    @property
    def multiplies_engine_ratios(self) -> bool:
        """True if the surrogate multiplies the tokens' ratios to the engine's policy."""
        return "engine_ratio" in self.included_weights


LOSS_TYPES = {
    "grpo": LossType(
        surrogate=clipped_surrogate,
        aggregate="sequence_mean",
        doc="the mean over the tokens of each completion, then over completions",
    ),
    "bnpo": LossType(
        surrogate=clipped_surrogate,
        aggregate="token_mean",
        doc="the mean over the tokens of a micro-batch",
    ),
    "dr_grpo": LossType(
        surrogate=clipped_surrogate,
        aggregate="constant_length",
        doc="the sum over tokens divided by the length limit, arXiv 2503.20783",
    ),
    "dapo": LossType(
        surrogate=clipped_surrogate,
        aggregate="global_token_mean",
        doc="the mean over all tokens, arXiv 2503.14476; see `token_normalizer`",
    ),
    "luspo": LossType(
        surrogate=clipped_surrogate,
        aggregate="token_sum",
        doc="the sum over the tokens of each completion, then the mean, arXiv 2602.05261",
        levels=("sequence", "token"),
        warning=ratio_level_warning,
    ),
    "cispo": LossType(
        surrogate=cispo_surrogate,
        aggregate="global_token_mean",
        doc="log-probabilities weighted by the ratio, capped at `epsilon_high`, arXiv 2506.13585",
        logs=CAPPING,
        parameters=("epsilon_high",),
        warning=cispo_cap_warning,
    ),
    "sapo": LossType(
        surrogate=sapo_surrogate,
        aggregate="sequence_mean",
        doc="a soft gate of the ratio, see `sapo_temperature_pos`",
        logs=(),
        parameters=("sapo_temperature_neg", "sapo_temperature_pos"),
        warning=no_warning,
    ),
    "vespo": LossType(
        surrogate=vespo_surrogate,
        aggregate="global_token_mean",
        doc="log-probabilities weighted by the ratio of the completion, see `vespo_k_pos`",
        logs=GAMMA,
        levels=("token",),
        parameters=("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"),
        included_weights=("engine_ratio",),
        warning=no_warning,
    ),
    "vespo_mean": LossType(
        surrogate=mean_vespo_surrogate,
        aggregate="global_token_mean",
        doc="'vespo' with the geometric mean of the ratios of the completion's tokens",
        logs=MEAN_GAMMA,
        levels=("token",),
        parameters=("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"),
        included_weights=("engine_ratio",),
        warning=no_warning,
    ),
    "gmpo": LossType(
        surrogate=gmpo_surrogate,
        aggregate="sequence_mean",
        doc="the geometric mean of the ratios of a completion, arXiv 2507.20673",
        logs=LOG_CLIPPING,
        levels=("token",),
        parameters=("epsilon", "epsilon_high"),
        included_weights=("chosen_by_entropy",),
        warning=no_warning,
    ),
}


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """The loss of a micro-batch, with the ratio and KL that its metrics are made of."""

    loss: Scalar
    ratio: BT1
    kl: BT | None


def policy_loss(r: Rollout, c: PolicyConfig, scale: Scale) -> PolicyLoss:
    """Return aggregate(w * surrogate(r, ratio) + beta * kl); arXiv 2402.03300 eq. 3, where w = 1.

    w is the product of the `WEIGHTS` that the surrogate does not contain already. The KL is that of
    `kl_estimator`. With `use_bias_correction_kl` it is multiplied by the ratio, which makes the
    gradient of k3 that of the KL if pi_old sampled the tokens.

    A rollout without reference log-probabilities has no KL: `kl` is None, and beta has no effect.
    """
    row = LOSS_TYPES[c.loss_type]
    ratio = RATIOS[c.importance_sampling_level].ratio(r)
    kl = kl_penalty(r, ratio, c)
    weighted = row.surrogate(r, ratio, c)
    for name, weight in WEIGHTS.items():
        factor = None if name in row.included_weights else weight(r, c)
        weighted = weighted if factor is None else weighted * factor
    per_token = (weighted if kl is None else weighted + c.beta * kl).expand_as(r.logps)
    aggregate = AGGREGATES[c.loss_aggregate or row.aggregate].mean
    mask = NORMALIZERS[c.top_entropy_normalizer].counts(r)
    return PolicyLoss(loss=aggregate(per_token, mask, scale), ratio=ratio, kl=kl)


def kl_penalty(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT | None:
    """Return the KL estimate of each token (B, T), or None without reference log-probabilities."""
    if r.ref_logps is None:
        return None
    plain = ESTIMATORS[c.kl_estimator](r.logps, r.ref_logps)
    return plain * ratio if c.use_bias_correction_kl else plain
