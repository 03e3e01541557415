"""Settings of self-distillation policy optimisation, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from core.configs.grpo import GRPOConfig
from core.configs.rollout import RolloutConfig
from core.distillation.divergence_config import NO_REFERENCE, check_shares
from core.distillation.own_teacher_config import (
    KINDS,
    MODES,
    SERVER,
    OwnTeacherConfig,
    check_template,
)
from core.option import choice, option
from eval.errors import BadValue

NO_BONUS = "the policy loss has no term of the entropy"
WHOLE = "all completions of a group are read"
WATCHED = "every trainer here logs what looks unhealthy, rewards without a spread too"
OF_SOLUTIONS = (
    "success_reward_threshold",
    "dont_reprompt_on_self_success",
    "solution_template",
    "remove_thinking_from_demonstration",
)
OF_FEEDBACK = ("feedback_template", "environment_feedback_only_without_solution")


@dataclass
class SDPOConfig(OwnTeacherConfig, GRPOConfig):
    """Settings of `SDPOTrainer`, with the names and defaults of TRL 1.16, and of GRPO.

    `normalize` is no setting of TRL. A prompt of the teacher that is longer than
    `max_reprompt_len` is refused; TRL cuts its beginning.

    Raises:
        BadValue: see `GRPOConfig` and `OwnTeacherConfig.check_own_teacher`, or a setting has no
            effect beside others.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **GRPOConfig.UNSUPPORTED,
        **dict.fromkeys(("beta", "kl_coef", "kl_estimator", "rollout_policy"), NO_REFERENCE),
        **dict.fromkeys(("use_bias_correction_kl", "sync_ref_model"), NO_REFERENCE),
        **dict.fromkeys(("ref_model_mixup_alpha", "ref_model_sync_steps"), NO_REFERENCE),
        **dict.fromkeys(("top_entropy_quantile", "entropy_coef", "use_adaptive_entropy"), NO_BONUS),
        **dict.fromkeys(("rollout_selection", "mask_truncated_completions"), WHOLE),
        **dict.fromkeys(("diagnostics_warning_interval", "diagnostics_flat_tolerance"), WATCHED),
        "use_teacher_server": SERVER,
        "semantics": "the losses are those of TRL 1.16",
        "vllm_importance_sampling_correction": "no loss reads the probabilities of the engine",
        "compare_sampler": "no loss reads the probabilities of the engine",
        "router_aux_loss_coef": "the loss has no load-balancing term",
        "keep_sampling_mask": "log-probabilities are over all tokens",
    }
    REMOVED: ClassVar[Mapping[str, str]] = {}
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **GRPOConfig.CHOICES,
        **OwnTeacherConfig.OWN_CHOICES,
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **GRPOConfig.AT_LEAST,
        **OwnTeacherConfig.OWN_AT_LEAST,
        "max_reprompt_len": 1,
    }
    SEMANTICS: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    PAPERS_HAVE: ClassVar[Mapping[str, object]] = {}

    distillation_alpha: float = option(1.0, "Divergence: 0 is the forward KL, 1 the reverse KL.")
    distillation_mode: str = choice("sampled_token", MODES, "The loss of a token")
    teacher_model_kind: str = choice("ema", KINDS, "Weights of the teacher")
    vllm_importance_sampling_correction: bool = option(False, "Not read.")
    distillation_weight: float = option(
        1.0, "Share of the distillation in the loss; the rest is the policy loss."
    )
    max_reprompt_len: int = option(10240, "Longest prompt of the teacher in tokens.")
    use_successful_as_teacher: bool = option(
        True, "Show the teacher another completion of the group that succeeded."
    )
    success_reward_threshold: float = option(1.0, "Reward from which on a completion succeeded.")
    dont_reprompt_on_self_success: bool = option(
        True, "Never show the teacher the completion itself that it assesses."
    )
    reprompt_template: str = option(
        "{prompt}{solution}{feedback}\n\nCorrectly solve the original question.\n",
        "The prompt of the teacher.",
    )
    solution_template: str = option(
        "\nCorrect solution:\n\n{successful_previous_attempt}\n\n",
        "Its part about a completion that succeeded.",
    )
    feedback_template: str = option(
        "\nThe following is feedback from your unsuccessful earlier attempt:\n\n{feedback_raw}\n\n",
        "Its part about feedback.",
    )
    include_environment_feedback: bool = option(
        False, "Show the teacher feedback, of feedback_funcs or in `privileged_context`."
    )
    environment_feedback_only_without_solution: bool = option(
        False, "Show feedback where no other completion succeeded alone."
    )
    remove_thinking_from_demonstration: bool = option(
        False, "Leave what stands between <think> and </think> out of what is shown."
    )
    diagnostics_warning_interval: int = option(10, "Steps between two warnings.")
    diagnostics_flat_tolerance: float = option(1e-8, "Spread that counts as none.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those without effect."""
        self.check_weight()  # before `loss_aggregate` is filled in
        super().resolve()
        check_shares(self, *self.shares)
        self.check_own_teacher()
        self.check_hints()
        check_template(
            "reprompt_template", self.reprompt_template, "prompt", "solution", "feedback"
        )
        check_template("solution_template", self.solution_template, "successful_previous_attempt")
        check_template("feedback_template", self.feedback_template, "feedback_raw")

    def check_weight(self) -> None:
        """Refuse settings of a loss that has weight 0, and a mean that two losses do not share.

        Raises:
            BadValue: there are such settings.
        """
        weight = self.distillation_weight
        of_policy = {f.name for f in fields(GRPOConfig)} - {f.name for f in fields(RolloutConfig)}
        of_policy -= {"token_normalizer", "use_transformers_paged"}  # of both losses, of rollouts
        of_teacher = {f.name for f in fields(OwnTeacherConfig)}
        of_teacher -= {f.name for f in fields(RolloutConfig)} | {"max_prompt_length"}
        idle = {1.0: of_policy, 0.0: of_teacher}.get(weight, set())
        for name in sorted(name for name in idle if self.is_set(name)):
            raise BadValue(
                f"SDPOConfig.{name}={getattr(self, name)!r} is of a loss with weight 0 beside "
                f"distillation_weight={weight!r}: leave it out"
            )
        if self.normalize == "token" and weight != 1:
            raise BadValue(
                f"normalize='token' with distillation_weight={weight!r}: the tokens that both "
                "losses divide by differ; leave one of the two out"
            )

    def check_hints(self) -> None:
        """Refuse a teacher that is shown nothing, and settings of what it is not shown.

        Raises:
            BadValue: there are such settings.
        """
        shown = {
            "use_successful_as_teacher": OF_SOLUTIONS,
            "include_environment_feedback": OF_FEEDBACK,
        }
        if not any(getattr(self, name) for name in shown):
            raise BadValue(
                "use_successful_as_teacher=False and include_environment_feedback=False: the "
                "teacher is shown nothing more than the student; set one of them"
            )
        for name, parameters in shown.items():
            idle = [] if getattr(self, name) else [p for p in parameters if self.is_set(p)]
            if idle:
                raise BadValue(
                    f"{idle[0]}={getattr(self, idle[0])!r} with {name}=False: leave it out"
                )

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return (*super().shares, "distillation_weight")

    @property
    def least_group(self) -> int:
        """Smallest number of completions of a prompt: 1 if no advantage is trained."""
        return 1 if self.distillation_weight == 1 else super().least_group

    @property
    def has_ratio(self) -> bool:
        """True if a loss has a ratio to the student that sampled."""
        return self.distillation_is_clip is not None or self.distillation_weight < 1
