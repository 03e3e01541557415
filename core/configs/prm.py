"""Settings of models of steps, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_free_config import SMOOTHED_TOKENS
from core.configs.reward import ScoringConfig
from core.option import option


@dataclass
class PRMConfig(ScoringConfig):
    """Settings of `PRMTrainer`, with the names and defaults of TRL 1.13, the last one with it.

    Raises:
        BadValue: see `BaseConfig`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = SMOOTHED_TOKENS
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 1, "max_completion_length": 1}

    learning_rate: float = option(1e-5, "Initial learning rate of AdamW.")
    max_length: int | None = option(
        1024, "Longest prompt with its steps in tokens; longer ones are cut at the end."
    )
    max_completion_length: int | None = option(
        None, "Longest solution in tokens, all steps together; longer ones are cut at the end."
    )
    step_separator: str = option("\n", "Text that ends each step; its last token has the label.")
    train_on_last_step_only: bool = option(False, "Train on the label of the last step alone.")
