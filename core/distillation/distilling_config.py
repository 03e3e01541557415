"""Settings of the trainers that bring a student near to another model, its teacher."""

from dataclasses import dataclass

from core.distillation.divergence_config import DivergenceConfig
from core.distillation.teacher_config import TeacherConfig
from core.option import option


@dataclass
class DistillingConfig(DivergenceConfig, TeacherConfig):
    """Settings that all trainers with a divergence from another model share.

    Raises:
        BadValue: see `DivergenceConfig`, or `beta` is outside [0, 1].
    """

    beta: float = option(1.0, "Divergence: 0 is the forward KL, 1 the reverse KL.")

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return ("beta",)

    @property
    def divergence_beta(self) -> float:
        """The beta of the divergence D_beta in the loss, a setting."""
        return self.beta
