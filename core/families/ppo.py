"""Proximal policy optimisation: each token's return is compared with a value model's estimate."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from core.families.family import Cost, Work, training_figures
from core.families.grpo import GRPO

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.ppo import PPOConfig
    from core.trainers.ppo import PPOTrainer


class PPO(GRPO):
    """Family of `PPOTrainer`."""

    name = "ppo"
    profiles: Mapping[str, Mapping[str, object]] = {
        **GRPO.profiles,
        "cpu": {
            **GRPO.profiles["cpu"],
            "num_generations": 1,
            "max_steps": 144,
            "save_steps": 48,
            "heldout_every": 16,
        },
        "gpu": {**GRPO.profiles["gpu"], "num_generations": 1},
    }
    progress = (*GRPO.progress, ("value_loss", "value loss", "{:.4f}"))
    figures = training_figures(
        {
            "reward": "mean reward",
            "completions/mean_length": "completion length (tokens)",
            "entropy": "entropy (nats/token)",
            "kl": "KL to reference (nats/token)",
            "value_loss": "loss of values",
            "value_explained": "explained share of the returns' variance",
        }
    )

    def config_class(self) -> "type[PPOConfig]":
        """Import the config class."""
        from core.configs.ppo import PPOConfig

        return PPOConfig

    def trainer_class(self) -> "type[PPOTrainer]":
        """Import the trainer class."""
        from core.trainers.ppo import PPOTrainer

        return PPOTrainer

    def cost(self, config: "BaseConfig", rows: int | None = None) -> Cost:
        """Return the cost of GRPO plus a value model's."""
        grpo_cost = super().cost(config, rows)
        return replace(grpo_cost, copies=(*grpo_cost.copies, *Cost.copies))

    def work(self, config: "BaseConfig", processes: int, share: Mapping[str, int]) -> Work:
        """Return the work of GRPO plus a value model's."""
        return replace(super().work(config, processes, share), values=True)
