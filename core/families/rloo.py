"""Leave-one-out REINFORCE: each answer is compared with the other answers to its prompt."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.families.grpo import GRPO

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.rloo import RLOOConfig
    from core.trainers.rloo import RLOOTrainer


class RLOO(GRPO):
    """Family of `RLOOTrainer`."""

    name = "rloo"
    profiles: Mapping[str, Mapping[str, object]] = {
        **GRPO.profiles,
        "cpu": {**GRPO.profiles["cpu"], "num_generations": 4},
        "gpu": {**GRPO.profiles["gpu"], "num_generations": 4},
    }

    def config_class(self) -> "type[RLOOConfig]":
        """Import the config class."""
        from core.configs.rloo import RLOOConfig

        return RLOOConfig

    def trainer_class(self) -> "type[RLOOTrainer]":
        """Import the trainer class."""
        from core.trainers.rloo import RLOOTrainer

        return RLOOTrainer
