"""Simple self-distillation: the likelihood of unverified samples of the model itself is raised."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.families.family import training_figures
from core.families.grpo import GRPO
from core.families.offline import Offline
from core.families.on_policy import OnPolicy

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.distillation.ssd import SSDTrainer
    from core.distillation.ssd_config import SSDConfig

UNUSED = ("num_generations",)  # of GRPO's profiles: a prompt has one completion


class SSD(OnPolicy, Offline):
    """Family of `SSDTrainer`, listed with fine-tuning."""

    name = "ssd"
    listed_with = "sft"
    trained_by = "self-distillation"
    has_regimes = False
    profiles: Mapping[str, Mapping[str, object]] = {
        scale: {name: value for name, value in profile.items() if name not in UNUSED}
        for scale, profile in GRPO.profiles.items()
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("completions/mean_length", "length", "{:.1f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss (nats/token)",
            "completions/mean_length": "completion length (tokens)",
            "ssd/active_sample_ratio": "share of completions trained on",
            "grad_norm": "norm of the gradient",
        }
    )

    def config_class(self) -> "type[SSDConfig]":
        """Import the config class."""
        from core.distillation.ssd_config import SSDConfig

        return SSDConfig

    def trainer_class(self) -> "type[SSDTrainer]":
        """Import the trainer class."""
        from core.distillation.ssd import SSDTrainer

        return SSDTrainer
