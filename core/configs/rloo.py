"""Settings of leave-one-out REINFORCE, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.grpo import GRPOConfig
from core.losses.advantages import SCALES
from core.losses.estimators import ESTIMATORS
from core.losses.policy import LOSS_TYPES
from core.losses.ratio import RATIOS
from core.option import choice, option
from eval.errors import BadValue


@dataclass
class RLOOConfig(GRPOConfig):
    """Settings of `RLOOTrainer`: those of GRPO with RLOO's defaults, and two of its own.

    `beta` is the weight of the KL in the reward, which GRPO calls `kl_coef`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GRPOConfig.UNSUPPORTED,
        "kl_coef": "set `beta`, which weighs the KL in the reward here",
        "kl_estimator": "the loss has no KL",
        "use_bias_correction_kl": "the loss has no KL",
    }

    num_generations: int = option(2, "Completions of one prompt: the group.")
    beta: float = option(0.05, "Weight of the KL to the reference in the reward; 0 loads none.")
    loss_type: str = choice("grpo", LOSS_TYPES, "The loss of tokens, and how they become one")
    importance_sampling_level: str = choice("completion", RATIOS, "Which ratios there are")
    scale_rewards: str = choice("none", SCALES, "Standard deviation that a reward is divided by")
    advantage_estimator: str = choice("leave_one_out", ESTIMATORS, "How rewards become advantages")
    vllm_importance_sampling_correction: bool = option(
        False, "Weigh losses by the trainer's probabilities over vLLM's."
    )
    normalize_advantages: bool = option(
        False, "Divide advantages by their deviation: scale_rewards='centred_batch'."
    )
    reward_clip_range: tuple[float, float] | None = option(
        None, "Range to which the sum of a completion's rewards is clamped, before the KL."
    )

    def resolve(self) -> None:
        """Resolve the settings as of GRPO; `normalize_advantages` chooses a scale.

        Raises:
            BadValue: another scale is chosen too, or `reward_clip_range` is no range.
        """
        if self.normalize_advantages:
            if self.is_set("scale_rewards"):
                raise BadValue(
                    f"normalize_advantages=True and scale_rewards={self.scale_rewards!r}: leave "
                    "one of them out"
                )
            self.scale_rewards = "centred_batch"
        if self.reward_clip_range is not None:
            low, high = self.reward_clip_range
            if not low < high:
                raise BadValue(
                    f"reward_clip_range={self.reward_clip_range}: expected a lower and a higher "
                    "number"
                )
        super().resolve()

    @property
    def penalises_kl(self) -> bool:
        """Always False: the KL is in the reward, not in the loss."""
        return False

    @property
    def reward_kl(self) -> float:
        """Weight of the KL in the reward."""
        return self.beta

    @property
    def reward_bounds(self) -> tuple[float, float] | None:
        """Limits of `reward_clip_range`, or None."""
        return self.reward_clip_range and (self.reward_clip_range[0], self.reward_clip_range[1])
