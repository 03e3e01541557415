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


class SharedSourceConfig(DistillingConfig):
    """Settings of a student that samples some of the rollouts; a subclass declares the fields."""

    lmbda: float
    max_length: int | None

    @property
    def shares(self) -> tuple[str, ...]:
        """Names of the settings that are a share."""
        return ("beta", "lmbda")

    @property
    def own_share(self) -> float:
        """Probability that a rollout is sampled by the student."""
        return self.lmbda

    @property
    def longest_row(self) -> int | None:
        """Number of tokens to which a prompt and its completion in the data are cut."""
        return self.max_length
