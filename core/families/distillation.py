"""Distillation: a student is brought near to a teacher, on completions of either or of the data."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from core.families.family import Training, training_figures
from core.families.offline import Offline
from core.families.on_policy import OnPolicy
from core.families.ssd import SSD
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.distillation.distilling import DistillingTrainer
    from core.distillation.divergence_config import DivergenceConfig
    from core.distillation.minillm import MiniLLMTrainer
    from core.distillation.minillm_config import MiniLLMConfig

TEACHER = "teacher"
OF_STEPS = ("kl_to_teacher/gone", "kl_to_teacher/right", "share_gone")  # of judged answers
OF_TRAINER = (
    "teacher_model_name_or_path",
    "teacher_model_revision",
    "teacher_model_init_kwargs",
)


def with_defaults(
    profiles: Mapping[str, Mapping[str, object]], scale: str, **settings: object
) -> Mapping[str, Mapping[str, object]]:
    """Return profiles with further settings at one scale."""
    return {**profiles, scale: {**profiles[scale], **settings}}


class Distillation(OnPolicy, Offline):
    """Family of `DistillationTrainer`; the teacher is a role of a run."""

    name = "distillation"
    columns = ("prompt",)
    listed_with = ""
    trained_by = "distillation"
    roles = (TEACHER,)
    profiles = with_defaults(SSD.profiles, "cpu", roles={TEACHER: "pocket-teacher"})
    teacher_quantities = (
        *("kl_to_teacher", "kl_to_teacher/first_half", "kl_to_teacher/second_half"),
        *("kl_to_teacher/gone", "kl_to_teacher/right", "forward_kl_to_teacher", "share_gone"),
    )
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("completions/mean_length", "length", "{:.1f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss (nats/token)",
            "entropy": "entropy of the student (nats/token)",
            "completions/mean_length": "completion length (tokens)",
            "grad_norm": "norm of the gradient",
        }
    )

    def reads(self, rewards: Sequence[Reward], held_out: int) -> tuple[str, ...]:
        """Return the columns of the training data; held-out problems bring their own answers."""
        del rewards, held_out
        return self.columns

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if there is no teacher, or one in a setting of the trainer.

        Raises:
            BadValue: no model has the role, or a setting names or loads a teacher.
        """
        del rewards
        for name in OF_TRAINER:
            if getattr(config, name) is not None:
                raise BadValue(
                    f"{name}={getattr(config, name)!r} is no setting of a run: set "
                    f"roles={{'{TEACHER}': ...}}"
                )
        if TEACHER not in roles:
            raise BadValue(
                f"the family {self.name} needs a teacher: set roles={{'{TEACHER}': ...}} to a "
                "model by name or folder"
            )

    def models_of(self, training: Training) -> Mapping[str, str]:
        """Return each role of the run as a keyword of the trainer, such as `teacher_model`."""
        return {f"{role}_model": model for role, model in training.roles.items()}

    def config_class(self) -> "type[DivergenceConfig | MiniLLMConfig]":
        """Import the config class."""
        from core.distillation.distillation_config import DistillationConfig

        return DistillationConfig

    def trainer_class(self) -> "type[DistillingTrainer | MiniLLMTrainer]":
        """Import the trainer class."""
        from core.distillation.distillation import DistillationTrainer

        return DistillationTrainer


class GKD(Distillation):
    """Family of `GKDTrainer`, whose data has completions too."""

    name = "gkd"
    columns = ("prompt", "completion")
    listed_with = Distillation.name
    profiles = with_defaults(Distillation.profiles, "cpu", data="pocket-worked")

    def config_class(self) -> "type[DivergenceConfig]":
        """Import the config class."""
        from core.distillation.gkd_config import GKDConfig

        return GKDConfig

    def trainer_class(self) -> "type[DistillingTrainer]":
        """Import the trainer class."""
        from core.distillation.gkd import GKDTrainer

        return GKDTrainer


class GOLD(GKD):
    """Family of `GOLDTrainer`, whose teacher may have other tokens."""

    name = "gold"
    teacher_quantities = ()

    def config_class(self) -> "type[DivergenceConfig]":
        """Import the config class."""
        from core.distillation.gold_config import GOLDConfig

        return GOLDConfig

    def trainer_class(self) -> "type[DistillingTrainer]":
        """Import the trainer class."""
        from core.distillation.gold import GOLDTrainer

        return GOLDTrainer


class IWOPD(Distillation):
    """Family of `IWOPDTrainer`."""

    name = "iw_opd"
    listed_with = Distillation.name

    def config_class(self) -> "type[DivergenceConfig]":
        """Import the config class."""
        from core.distillation.iw_opd_config import IWOPDConfig

        return IWOPDConfig

    def trainer_class(self) -> "type[DistillingTrainer]":
        """Import the trainer class."""
        from core.distillation.iw_opd import IWOPDTrainer

        return IWOPDTrainer


class MiniLLM(Distillation):
    """Family of `MiniLLMTrainer`, without reward functions; `lm_coef` reads the completions."""

    name = "minillm"
    columns = GKD.columns
    listed_with = Distillation.name
    profiles = GKD.profiles

    def config_class(self) -> "type[MiniLLMConfig]":
        """Import the config class."""
        from core.distillation.minillm_config import MiniLLMConfig

        return MiniLLMConfig

    def trainer_class(self) -> "type[MiniLLMTrainer]":
        """Import the trainer class."""
        from core.distillation.minillm import MiniLLMTrainer

        return MiniLLMTrainer
