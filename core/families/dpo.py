"""Direct preference optimisation and the losses beside it: pairs of answers are told apart."""

from typing import TYPE_CHECKING, cast

from core.families.preference_pairs import PreferencePairs

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.configs.dpo import DPOConfig
    from core.preference.dpo import DPOTrainer


class DPO(PreferencePairs):
    """Family of `DPOTrainer`, on prompts with a chosen and a rejected answer."""

    name = "dpo"

    def config_class(self) -> "type[DPOConfig]":
        """Import the config class."""
        from core.configs.dpo import DPOConfig

        return DPOConfig

    def trainer_class(self) -> "type[DPOTrainer]":
        """Import the trainer class."""
        from core.preference.dpo import DPOTrainer

        return DPOTrainer

    def keeps_reference(self, config: "BaseConfig") -> bool:
        """Return whether a reference is in memory beside the policy while it trains."""
        return not cast("DPOConfig", config).precompute_ref_log_probs
