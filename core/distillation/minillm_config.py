"""Settings of MiniLLM, with the names and defaults of TRL 1.14.2, the last release with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.grpo import GRPOConfig
from core.distillation.teacher_config import TeacherConfig
from core.distillation.unrewarded import UNREWARDED
from core.option import option
from eval.errors import BadValue

CURRENT, NEXT = "current", "next"
UNREAD = ("log_multimodal", "router_aux_loss_coef", "keep_sampling_mask")
# Settings of the sampler that the mixture of two models does not read, or has values for.
OF_ONE_MODEL = (
    *("use_vllm", "rollout_engine", "rollout_policy", "rollout_lag", "rollout_bits"),
    *("generation_kwargs", "repetition_penalty", "vllm_importance_sampling_correction"),
    *("vllm_importance_sampling_mode", "vllm_importance_sampling_cap"),
    *("vllm_importance_sampling_clip_max", "vllm_importance_sampling_clip_min"),
)


@dataclass
class MiniLLMConfig(GRPOConfig, TeacherConfig):
    """Settings of `MiniLLMTrainer`: those of `GRPOTrainer`, of the teacher and of its rewards.

    `return_from`, `teacher_mix_alpha`, `lm_coef` and the name of the teacher are no settings of
    TRL. With `num_generations=1` rewards are not compared, and `scale_rewards` is "none".

    Raises:
        BadValue: see `GRPOConfig`, a value is out of range, or a setting has no effect.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GRPOConfig.UNSUPPORTED,
        **{name: UNREWARDED[name] for name in UNREAD},
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **GRPOConfig.CHOICES,
        "return_from": (CURRENT, NEXT),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {**GRPOConfig.AT_LEAST, "lm_coef": 0.0}

    disable_dropout: bool = option(True, "Train without dropout.")
    rkl_advantage: bool = option(
        True, "Add the return of log T - log S to the advantage of each sampled token."
    )
    single_step_decomposition: bool = option(
        True, "Add the reverse KL over the vocabulary at each token to the loss."
    )
    kd_temperature: float = option(1.0, "Temperature of both models in the two terms above.")
    gamma: float = option(0.0, "Discount of the rewards log T - log S of later tokens.")
    length_normalization: bool = option(
        True, "Divide a return by the sum of the discounts of its rewards."
    )
    return_from: str = option(
        CURRENT,
        f"First reward of a return: '{CURRENT}', the token's own; '{NEXT}', that of the next "
        "token, as in the paper.",
    )
    teacher_mix_alpha: float = option(
        0.0, "Probability of the teacher in the mixture that each token is sampled from."
    )
    lm_coef: float = option(0.0, "Weight of the cross-entropy of the completions of the data.")

    def resolve(self) -> None:
        """Resolve the settings as of GRPO, and refuse those that have no effect."""
        if self.num_generations == 1:
            self.scale_rewards = "none"
        if self.teacher_mix_alpha:
            self.weigh_mixture()
        super().resolve()
        if not 0 <= self.gamma <= 1:
            raise BadValue(f"MiniLLMConfig.gamma={self.gamma!r}: expected 0 to 1")
        if not self.kd_temperature > 0:
            raise BadValue(f"kd_temperature={self.kd_temperature}: expected above 0")
        self.check_returns()

    def weigh_mixture(self) -> None:
        """Weigh sampled tokens by S / mixture, and refuse settings of a sampler of one model.

        Raises:
            BadValue: such a setting is not at its default.
        """
        if not 0 <= self.teacher_mix_alpha < 1:
            raise BadValue(
                f"teacher_mix_alpha={self.teacher_mix_alpha!r}: expected 0 to below 1, so that "
                "the student can sample each of its tokens"
            )
        for name in filter(self.is_set, OF_ONE_MODEL):
            raise BadValue(
                f"{name}={getattr(self, name)!r} with teacher_mix_alpha={self.teacher_mix_alpha}: "
                "two models sample together, and tokens are weighted by S / mixture; leave one "
                "of them out"
            )
        self.vllm_importance_sampling_mode = "token_truncate"
        self.vllm_importance_sampling_clip_max = 1 / (1 - self.teacher_mix_alpha)  # of S / mixture

    def check_returns(self) -> None:
        """Refuse settings of a return that is not computed, or has no later rewards.

        Raises:
            BadValue: there are such settings.
        """
        if not (self.rkl_advantage or self.single_step_decomposition):
            raise BadValue(
                "rkl_advantage=False and single_step_decomposition=False: the loss reads no "
                "teacher; GRPOConfig trains without one"
            )
        rest = ("length_normalization", "return_from")
        idle = (*rest, "gamma") if not self.rkl_advantage else rest if self.gamma == 0 else ()
        for name in filter(self.is_set, idle):
            why = "gamma=0: no later reward counts" if self.rkl_advantage else "rkl_advantage=False"
            raise BadValue(f"{name}={getattr(self, name)!r} has no effect with {why}")

    @property
    def compares_sampler(self) -> bool:
        """True if the sampler's log-probabilities can differ, or are read in any case."""
        return self.teacher_mix_alpha > 0 or super().compares_sampler

    @property
    def least_group(self) -> int:
        """Smallest number of completions of a prompt: 1, as rewards are optional."""
        return 1
