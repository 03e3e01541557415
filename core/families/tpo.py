"""Triple preference optimisation: pairs without a reference, and gold answers beside them."""

from typing import TYPE_CHECKING

from core.families.preference_pairs import PreferencePairs

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.tpo import TPOConfig
    from core.preference.tpo import TPOTrainer


class TPO(PreferencePairs):
    """Family of `TPOTrainer`, on prompts with a chosen, a rejected and a gold answer."""

    name = "tpo"
    columns = (*PreferencePairs.columns, "reference")
    pair_quantities = (*PreferencePairs.pair_quantities, "log_ratio/gold")

    def config_class(self) -> "type[TPOConfig]":
        """Import the config class."""
        from core.configs.tpo import TPOConfig

        return TPOConfig

    def trainer_class(self) -> "type[TPOTrainer]":
        """Import the trainer class."""
        from core.preference.tpo import TPOTrainer

        return TPOTrainer
