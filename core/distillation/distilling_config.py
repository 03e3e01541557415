"""Settings of the trainers that bring a student near to another model, its teacher."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.distillation.divergence_config import DivergenceConfig
from core.distillation.teacher_config import TeacherConfig
from core.option import option


@dataclass
class DistillingConfig(DivergenceConfig, TeacherConfig):
    """Settings that all trainers with a divergence from another model share.

    Raises:
        BadValue: see `DivergenceConfig`, or `beta` is outside [0, 1].
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = DivergenceConfig.UNSUPPORTED
    REMOVED: ClassVar[Mapping[str, str]] = DivergenceConfig.REMOVED
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = DivergenceConfig.CHOICES
    AT_LEAST: ClassVar[Mapping[str, float]] = DivergenceConfig.AT_LEAST

    beta: float = option(1.0, "Divergence: 0 is the forward KL, 1 the reverse KL.")

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return ("beta",)

    @property
    def divergence_beta(self) -> float:
        """The beta of the divergence D_beta in the loss, a setting."""
        return self.beta
