"""Supervised fine-tuning: the likelihood of given answers is raised."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from core.families.family import training_figures
from core.families.offline import Offline
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.sft import SFTConfig
    from core.trainers.sft import SFTTrainer


class SFT(Offline):
    """Family of `SFTTrainer`, on prompts with completions."""

    name = "sft"
    columns = ("prompt", "completion")
    trained_by = "fine-tuning"
    unused = ("rewards", "scorers")
    probabilities = ("nll", "extreme_share")
    claimed_probabilities = ("nll/without_end",)
    own_answers = ("kl_to_start",)
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
            "data": "pocket-worked",
            "learning_rate": 1e-4,
            "lr_scheduler_type": "constant",
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 1,
            "max_steps": 36,
            "max_length": 256,
            "save_steps": 12,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 2e-5,
            "per_device_train_batch_size": 16,
            "gradient_accumulation_steps": 4,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("loss", "loss", "{:.4f}"),
        ("mean_token_accuracy", "right tokens", "{:.3f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "loss": "loss (nats/token)",
            "mean_token_accuracy": "share of right tokens",
            "entropy": "entropy (nats/token)",
            "grad_norm": "norm of the gradient",
        }
    )

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if `chat_template_path` is set: runs have one setting for all families.

        Raises:
            BadValue: it is set.
        """
        del rewards, roles
        path = cast("SFTConfig", config).chat_template_path
        if path is not None:
            raise BadValue(
                f"chat_template_path={path} is no setting of a run: give chat_template=plain or a "
                "Jinja file"
            )

    def config_class(self) -> "type[SFTConfig]":
        """Import the config class."""
        from core.configs.sft import SFTConfig

        return SFTConfig

    def trainer_class(self) -> "type[SFTTrainer]":
        """Import the trainer class."""
        from core.trainers.sft import SFTTrainer

        return SFTTrainer
