"""Settings of verifiers, which TRL has no trainer of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.reference_free_config import SMOOTHED_TOKENS
from core.configs.reward import ScoringConfig
from core.option import option


@dataclass
class VerifierConfig(ScoringConfig):
    """Settings of `VerifierTrainer`.

    Raises:
        BadValue: see `BaseConfig`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = SMOOTHED_TOKENS
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 1, "lm_coef": 0.0}

    learning_rate: float = option(1e-5, "Initial learning rate of AdamW.")
    max_length: int | None = option(
        1024, "Longest prompt with its solution in tokens; longer ones are cut at the end."
    )
    lm_coef: float = option(
        1.0, "Weight of the negative log-likelihood of the tokens of a solution; 0 leaves it out."
    )
