"""Settings of the optimal values of prompts: what is sampled, and how soft their maximum is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.answers import AnswersConfig
from core.option import option
from eval.errors import BadValue


@dataclass
class OptimalValueConfig(AnswersConfig):
    """What is sampled, and what becomes of the rewards of a prompt; TRL's names, the paper's."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {"beta1", "filter_all_incorrect"}

    num_generations: int = option(8, "Completions sampled of each prompt.")
    beta1: float = option(0.5, "How soft the maximum over them is: 0 the greatest, inf the mean.")
    filter_all_incorrect: bool = option(False, "Drop prompts whose rewards are all 0.")

    def check_fields(self) -> None:
        """As of all that samples answers; then refuse a softness that is none.

        Raises:
            BadValue: with it.
        """
        super().check_fields()
        if not 0 < self.beta1 < float("inf"):
            raise BadValue(f"beta1={self.beta1}: expected a number above 0")
