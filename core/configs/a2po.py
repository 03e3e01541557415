"""Settings of optimal advantage regression (A*-PO)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.grpo import GRPOConfig
from core.option import option

NO_RATIO = "the loss is a squared regression, without a ratio to the policy at rollout"
NO_KL = "the log-ratio to the reference is the loss itself, see `beta2`"
ALONE = "a completion is compared with the value of its prompt, not with others"


@dataclass
class A2POConfig(GRPOConfig):
    """Settings of `A2POTrainer`: those of rollouts, and `beta2`.

    Values of prompts come with the data, in the column `optimal_value`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GRPOConfig.UNSUPPORTED,
        **dict.fromkeys(("loss_type", "importance_sampling_level", "epsilon"), NO_RATIO),
        **dict.fromkeys(("epsilon_high", "delta", "off_policy_mask_threshold"), NO_RATIO),
        **dict.fromkeys(("top_entropy_quantile", "entropy_coef", "use_adaptive_entropy"), NO_RATIO),
        **dict.fromkeys(("vllm_importance_sampling_correction", "loss_aggregate"), NO_RATIO),
        **dict.fromkeys(("beta", "kl_coef", "kl_estimator", "use_bias_correction_kl"), NO_KL),
        **dict.fromkeys(("advantage_estimator", "rollout_selection"), ALONE),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {**GRPOConfig.AT_LEAST, "beta2": 0.0}

    num_generations: int = option(1, "Completions of one prompt: the group.")
    loss_type: str = option("grpo", "Means over completions.")
    advantage_estimator: str = option("value", "Reward minus the value of its prompt.")
    vllm_importance_sampling_correction: bool = option(False, "Not read.")
    beta2: float = option(1e-3, "Weight of the log-ratio to the reference.")

    @property
    def penalises_kl(self) -> bool:
        """Always True: the loss reads the reference."""
        return True

    @property
    def scales_rewards(self) -> bool:
        """Always False."""
        return False
