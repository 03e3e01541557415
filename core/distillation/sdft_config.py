"""Settings of self-distillation fine-tuning, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.distillation.divergence_config import DivergenceConfig
from core.distillation.own_teacher_config import SERVER, OwnTeacherConfig, check_template
from core.option import option


@dataclass
class SDFTConfig(OwnTeacherConfig, DivergenceConfig):
    """Settings of `SDFTTrainer`, with the names and defaults of TRL 1.16, and of rollouts.

    `normalize` is no setting of TRL. A prompt of the teacher that is longer than
    `max_prompt_length` is refused; TRL cuts its beginning.

    Raises:
        BadValue: see `DivergenceConfig` and `OwnTeacherConfig.check_own_teacher`, or the template
            lacks a field.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **DivergenceConfig.UNSUPPORTED,
        "use_teacher_server": SERVER,
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **DivergenceConfig.CHOICES,
        **OwnTeacherConfig.OWN_CHOICES,
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **DivergenceConfig.AT_LEAST,
        **OwnTeacherConfig.OWN_AT_LEAST,
        "num_loss_tokens_to_skip": 0,
    }

    distillation_topk: int | None = option(100, "Number of most likely tokens.")
    generate_from_teacher: bool = option(False, "Sample after the prompt of the teacher.")
    teacher_prompt_template: str = option(
        "{prompt}\n\n{privileged_context}", "The prompt of the teacher."
    )
    num_loss_tokens_to_skip: int = option(0, "First tokens of a completion without a loss.")

    def resolve(self) -> None:
        """Resolve the settings, and refuse those without effect."""
        super().resolve()
        self.check_own_teacher()
        fields = ("prompt", "privileged_context")
        check_template("teacher_prompt_template", self.teacher_prompt_template, *fields)

    @property
    def has_ratio(self) -> bool:
        """True if the loss has a ratio to the student that sampled."""
        return self.distillation_is_clip is not None and not self.generate_from_teacher
