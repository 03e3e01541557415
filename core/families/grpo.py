"""Group relative policy optimisation: answers are sampled in groups and scored by rewards."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from core.families.family import Training, training_figures
from core.families.on_policy import OnPolicy
from core.families.profiles import CPU_TRAINING, GPU_TRAINING, PAPER_TRAINING
from core.paper import Reward
from eval.errors import BadValue

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.grpo import GRPOConfig
    from core.trainers.grpo import GRPOTrainer


class GRPO(OnPolicy):
    """Family of `GRPOTrainer`."""

    name = "grpo"
    roles = ("reward",)
    profiles: Mapping[str, Mapping[str, object]] = {
        "cpu": {
            **CPU_TRAINING,
            "data": "pocket",
            "learning_rate": 2e-4,
            "lr_scheduler_type": "constant",
            "num_generations": 16,
            "per_device_train_batch_size": 128,
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 1,
            "max_steps": 36,
            "max_completion_length": 64,
            "save_steps": 12,
        },
        "gpu": {
            **GPU_TRAINING,
            "learning_rate": 1e-6,
            "num_generations": 16,
            "per_device_train_batch_size": 32,
            "gradient_accumulation_steps": 8,
            "steps_per_generation": 8,
            "max_steps": 200,
            "save_steps": 50,
        },
        "paper": PAPER_TRAINING,
    }
    progress = (
        ("reward", "reward", "{:.3f}"),
        ("entropy", "entropy", "{:.3f}"),
        ("kl", "KL", "{:.4f}"),
        ("held_out/accuracy", "held-out", "{:.1f} %"),
    )
    figures = training_figures(
        {
            "reward": "mean reward",
            "completions/mean_length": "completion length (tokens)",
            "entropy": "entropy (nats/token)",
            "kl": "KL to reference (nats/token)",
        }
    )

    def check(
        self, config: "BaseConfig", rewards: Sequence[Reward], roles: Collection[str]
    ) -> None:
        """Raise if rewards and weights do not match, or settings of the loss are contradictory.

        Raises:
            BadValue: they do; the message has the reason.
        """
        super().check(config, rewards, roles)
        doubt = cast("GRPOConfig", config).loss_warning
        if doubt is not None:
            raise BadValue(doubt)

    def config_class(self) -> "type[GRPOConfig]":
        """Import the config class."""
        from core.configs.grpo import GRPOConfig

        return GRPOConfig

    def trainer_class(self) -> "type[GRPOTrainer]":
        """Import the trainer class."""
        from core.trainers.grpo import GRPOTrainer

        return GRPOTrainer

    def trainer(self, training: Training) -> "GRPOTrainer":
        """Import and build the trainer."""
        from core.models.load import load_policy, load_tokenizer

        return training.trainer_of(self.trainer_class())(
            model=load_policy(training.model, trust_code=training.config.trust_remote_code),
            reward_funcs=[*training.rewards, *training.roles.values()],
            args=cast("GRPOConfig", training.config),
            train_dataset=training.rows,
            processing_class=load_tokenizer(
                training.model,
                training.chat_template,
                trust_code=training.config.trust_remote_code,
            ),
            callbacks=list(training.callbacks),
            peft_config=training.adapters,
            **self.arguments(training),
        )

    def arguments(self, training: Training) -> Mapping[str, Any]:  # Any: of the trainer's class
        """Return further arguments of the trainer."""
        del training
        return {}
