"""Odds ratio preference optimisation: fine-tuning on chosen answers that avoids rejected ones."""

from typing import TYPE_CHECKING

from core.families.preference_pairs import PreferencePairs

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.orpo import ORPOConfig
    from core.preference.orpo import ORPOTrainer


class ORPO(PreferencePairs):
    """Family of `ORPOTrainer`, on prompts with a chosen and a rejected answer."""

    name = "orpo"

    def config_class(self) -> "type[ORPOConfig]":
        """Import the config class."""
        from core.configs.orpo import ORPOConfig

        return ORPOConfig

    def trainer_class(self) -> "type[ORPOTrainer]":
        """Import the trainer class."""
        from core.preference.orpo import ORPOTrainer

        return ORPOTrainer
