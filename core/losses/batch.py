"""Inputs of a policy loss: a micro-batch of scored completions, and the settings of the loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.shapes import BT, BT1, Mask


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """Log-probabilities and advantages of B completions of at most T tokens.

    Attributes:
        logps: Log-probabilities under the current policy, with gradient.
        old_logps: Log-probabilities under the policy at the time of the rollout.
        advantages: One advantage per completion (B, 1) or per token (B, T).
        mask: 1 on trained tokens.
        ref_logps: Log-probabilities under the reference policy.
        sampling_ratio: pi_old over the policy of the sampling engine, if the two differ.
        sampling_logps: Log-probabilities that the sampling engine reported, NaN where it reported
            none.
        kept: 1 on tokens that are selected by their entropy; None selects all.
    """

    logps: BT
    old_logps: BT
    advantages: BT1
    mask: Mask
    ref_logps: BT | None = None
    sampling_ratio: BT1 | None = None
    sampling_logps: BT | None = None
    entropy_mask: Mask | None = None

    @property
    def log_ratio(self) -> BT:
        """log(pi / pi_old) of each token (B, T)."""
        return self.logps - self.old_logps

    @property
    def kept_mask(self) -> Mask:
        """Mask (B, T) of the trained tokens that are also selected by their entropy."""
        return self.mask if self.entropy_mask is None else self.mask * self.entropy_mask


@dataclass
class PolicyConfig:
    """Settings of a policy loss; the config of a trainer inherits them."""

    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "beta": 0.0,
        "epsilon": 0.0,
        "epsilon_high": 0.0,
        "delta": 0.0,
        "vespo_k_pos": 0.0,
        "vespo_lambda_pos": 0.0,
        "vespo_k_neg": 0.0,
        "vespo_lambda_neg": 0.0,
        "off_policy_mask_threshold": 0.0,
    }

    loss_type: str = "grpo"
    importance_sampling_level: str = "token"
    epsilon: float = option(0.2, "Lower clip width of the ratio; of its logarithm for 'gmpo'.")
    epsilon_high: float | None = option(
        None, "Upper clip width, for 'cispo' the upper bound itself; unset, `epsilon`."
    )
    delta: float | None = option(None, "Cap of the ratio before the clip; unset, none.")
    beta: float = option(0.0, "Weight of the KL to the reference; 0 loads no reference.")
    use_bias_correction_kl: bool = option(True, "Multiply the KL estimate by the ratio.")
    sapo_temperature_neg: float = option(1.05, "SAPO's temperature of negative advantages.")
    sapo_temperature_pos: float = option(1.0, "SAPO's temperature of positive advantages.")
    vespo_k_pos: float = option(2.0, "VESPO's k of positive advantages.")
    vespo_lambda_pos: float = option(3.0, "VESPO's lambda of positive advantages.")
    vespo_k_neg: float = option(3.0, "VESPO's k of negative advantages.")
    vespo_lambda_neg: float = option(2.0, "VESPO's lambda of negative advantages.")
    off_policy_mask_threshold: float | None = option(
        None,
        "Mean log(sampler / policy) of a completion above which it is left out of the loss if its "
        "advantage is negative; unset, none is.",
    )
    kl_estimator: str = "k3"
    top_entropy_normalizer: str = "all"
    loss_aggregate: str | None = None

    @property
    def upper_epsilon(self) -> float:
        """The upper clip width: `epsilon_high`, or `epsilon` if that is None."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high
