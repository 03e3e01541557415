"""Contrastive preference optimisation, SimPO and AlphaPO: pairs without a reference."""

from typing import TYPE_CHECKING

from core.families.preference_pairs import PreferencePairs

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.cpo import CPOConfig
    from core.preference.cpo import CPOTrainer


class CPO(PreferencePairs):
    """Family of `CPOTrainer`, on prompts with a chosen and a rejected answer."""

    name = "cpo"

    def config_class(self) -> "type[CPOConfig]":
        """Import the config class."""
        from core.configs.cpo import CPOConfig

        return CPOConfig

    def trainer_class(self) -> "type[CPOTrainer]":
        """Import the trainer class."""
        from core.preference.cpo import CPOTrainer

        return CPOTrainer
