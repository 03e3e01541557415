"""Optimal advantage regression (A*-PO): one answer per prompt, compared with an optimal value."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.families.family import training_figures
from core.families.grpo import GRPO

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.a2po import A2POConfig
    from core.trainers.a2po import A2POTrainer


class A2PO(GRPO):
    """Family of `A2POTrainer`."""

    name = "a2po"
    columns = (*GRPO.columns, "optimal_value")
    profiles: Mapping[str, Mapping[str, object]] = {
        **GRPO.profiles,
        "cpu": {**GRPO.profiles["cpu"], "num_generations": 1},
        "gpu": {**GRPO.profiles["gpu"], "num_generations": 1},
    }
    figures = training_figures(
        {
            "reward": "mean reward",
            "implicit_reward": "implicit reward",
            "advantage": "reward beyond the prompt's value",
            "entropy": "entropy (nats/token)",
            "kl": "KL to reference (nats/token)",
        }
    )

    def config_class(self) -> "type[A2POConfig]":
        """Import the config class."""
        from core.configs.a2po import A2POConfig

        return A2POConfig

    def trainer_class(self) -> "type[A2POTrainer]":
        """Import the trainer class."""
        from core.trainers.a2po import A2POTrainer

        return A2POTrainer
