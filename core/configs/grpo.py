"""Settings of group relative policy optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.rollout import NO_PAGED, RolloutConfig
from core.losses.advantages import AGGREGATIONS, SCALES
from core.losses.aggregate import TOKEN_NORMALIZERS
from core.losses.batch import PolicyConfig
from core.losses.estimators import ESTIMATORS
from core.losses.policy import LOSS_TYPES
from core.losses.ratio import RATIOS
from core.losses.sampling import MODES, Correction
from core.option import choice, option
from eval.errors import BadValue

NO_ENTROPY = "the loss has no entropy term"
NO_LOSS = "its loss type is not implemented"
NO_TOOLS = "no tools are called"
NO_OFF_POLICY = "off-policy sequences are not masked"


@dataclass
class GRPOConfig(PolicyConfig, RolloutConfig):
    """Settings of `GRPOTrainer`: those of every rollout, of advantages and of the policy loss.

    `advantage_estimator` and `token_normalizer` are not TRL's. At their defaults loss_type='dapo',
    the default, differs where an optimizer step takes several rollouts.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **RolloutConfig.UNSUPPORTED,
        "vllm_importance_sampling_cap": "set `vllm_importance_sampling_clip_max`",
        "sapo_temperature_neg": NO_LOSS,
        "sapo_temperature_pos": NO_LOSS,
        "vespo_k_pos": NO_LOSS,
        "vespo_lambda_pos": NO_LOSS,
        "vespo_k_neg": NO_LOSS,
        "vespo_lambda_neg": NO_LOSS,
        "top_entropy_quantile": "every token is trained on",
        "entropy_coef": NO_ENTROPY,
        "use_adaptive_entropy": NO_ENTROPY,
        "entropy_coef_min": NO_ENTROPY,
        "entropy_coef_max": NO_ENTROPY,
        "entropy_coef_delta": NO_ENTROPY,
        "entropy_target": NO_ENTROPY,
        "max_tool_calling_iterations": NO_TOOLS,
        "off_policy_mask_threshold": NO_OFF_POLICY,
        "use_transformers_paged": NO_PAGED,
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **RolloutConfig.CHOICES,
        "loss_type": tuple(LOSS_TYPES),
        "importance_sampling_level": tuple(RATIOS),
        "scale_rewards": tuple(SCALES),
        "multi_objective_aggregation": tuple(AGGREGATIONS),
        "advantage_estimator": tuple(ESTIMATORS),
        "token_normalizer": tuple(TOKEN_NORMALIZERS),
        "vllm_importance_sampling_mode": tuple(MODES),
    }
    ALIASES: ClassVar[Mapping[str, Mapping[object, object]]] = {
        "scale_rewards": {True: "group", False: "none", "true": "group", "false": "none"},
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RolloutConfig.AT_LEAST,
        **PolicyConfig.AT_LEAST,
        "vllm_importance_sampling_clip_max": 0.0,
        "vllm_importance_sampling_clip_min": 0.0,
    }

    TRL_WAYS: ClassVar[Mapping[str, object]] = {"token_normalizer": "rollout"}

    sapo_temperature_neg: float = option(1.05, "SAPO's temperature of negative advantages.")
    sapo_temperature_pos: float = option(1.0, "SAPO's temperature of positive advantages.")
    vespo_k_pos: float = option(2.0, "VESPO's k of positive advantages.")
    vespo_lambda_pos: float = option(3.0, "VESPO's lambda of positive advantages.")
    vespo_k_neg: float = option(3.0, "VESPO's k of negative advantages.")
    vespo_lambda_neg: float = option(2.0, "VESPO's lambda of negative advantages.")

    importance_sampling_level: str = choice("token", RATIOS, "Which ratios there are")
    multi_objective_aggregation: str = choice(
        "sum_then_normalize", AGGREGATIONS, "What several rewards become"
    )
    scale_rewards: str = choice("group", SCALES, "Standard deviation that a reward is divided by")
    loss_type: str = choice("dapo", LOSS_TYPES, "How the losses of tokens become one")

    top_entropy_quantile: float = option(1.0, "Train on this share of most uncertain tokens.")
    entropy_coef: float = option(0.0, "Weight of the entropy bonus.")
    use_adaptive_entropy: bool = option(False, "Steer the entropy bonus to a target.")
    entropy_coef_min: float = option(0.0, "Least adaptive weight.")
    entropy_coef_max: float = option(1.0, "Greatest adaptive weight.")
    entropy_coef_delta: float = option(0.005, "Step of the adaptive weight.")
    entropy_target: float = option(0.2, "Entropy that the adaptive weight aims at.")
    max_tool_calling_iterations: int | None = option(None, "Rounds of tool calls.")

    vllm_importance_sampling_correction: bool = option(
        True, "Weigh losses by the trainer's probabilities over vLLM's."
    )
    vllm_importance_sampling_mode: str = choice("sequence_mask", MODES, "That ratio")
    vllm_importance_sampling_clip_max: float | None = option(3.0, "Its upper limit.")
    vllm_importance_sampling_clip_min: float | None = option(None, "Its lower limit.")
    off_policy_mask_threshold: float | None = option(None, "KL above which a sequence is masked.")

    use_transformers_paged: bool = option(False, "Deprecated in TRL.")
    vllm_importance_sampling_cap: float | None = option(None, "Deprecated in TRL.")

    advantage_estimator: str = choice("group", ESTIMATORS, "How rewards become advantages")
    token_normalizer: str = choice(
        "step",
        TOKEN_NORMALIZERS,
        "Tokens that a loss divides by where a step takes several rollouts "
        "(gradient_accumulation_steps above steps_per_generation)",
    )

    def resolve(self) -> None:
        """As of every method with rollouts; then what a loss and an estimator take."""
        super().resolve()
        self.check_loss()
        self.check_correction()

    @property
    def reads_reference(self) -> bool:
        """Whether the loss has a KL to the reference."""
        return self.beta != 0.0

    @property
    def counts_tokens(self) -> bool:
        """Whether the loss divides by the tokens of rollouts, of which a step has several."""
        return self.mixes_rollouts and LOSS_TYPES[self.loss_type].counts_tokens

    @property
    def scales_rewards(self) -> bool:
        """Whether `scale_rewards` plays a part in what rewards become."""
        return AGGREGATIONS[self.multi_objective_aggregation].scales

    @property
    def corrects_sampling(self) -> bool:
        """Whether losses are weighed by the ratio to the probabilities of vLLM."""
        return self.use_vllm and self.vllm_importance_sampling_correction

    @property
    def correction(self) -> Correction:
        """How losses are weighed for an engine whose policy is slightly another one."""
        return Correction(
            mode=self.vllm_importance_sampling_mode,
            clip_min=self.vllm_importance_sampling_clip_min,
            clip_max=self.vllm_importance_sampling_clip_max,
        )

    def check_loss(self) -> None:
        """Refuse a ratio that the loss is not defined for, and settings that would not act."""
        levels = LOSS_TYPES[self.loss_type].levels
        if self.importance_sampling_level not in levels:
            raise BadValue(
                f"importance_sampling_level={self.importance_sampling_level!r}: loss_type="
                f"{self.loss_type!r} takes {', '.join(map(repr, levels))}"
            )
        self.refuse_idle("loss_type", LOSS_TYPES)
        self.refuse_idle("advantage_estimator", ESTIMATORS)

    def check_correction(self) -> None:
        """Refuse limits of the correction that leave nothing, or a mode that lacks them."""
        low, high = self.vllm_importance_sampling_clip_min, self.vllm_importance_sampling_clip_max
        if low is not None and high is not None and low >= high:
            raise BadValue(
                f"vllm_importance_sampling_clip_min={low} is not below "
                f"vllm_importance_sampling_clip_max={high}"
            )
        bounded = low is not None or high is not None
        mode = MODES[self.vllm_importance_sampling_mode]
        if self.vllm_importance_sampling_correction and mode.needs_limits and not bounded:
            raise BadValue(
                f"vllm_importance_sampling_mode={self.vllm_importance_sampling_mode!r} without "
                "limits: set vllm_importance_sampling_clip_max or vllm_importance_sampling_clip_min"
            )
