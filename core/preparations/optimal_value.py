"""Settings of the optimal values of prompts: what is sampled, and how soft their maximum is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.preparations.sampled_answers import AnswersConfig
from eval.errors import BadValue


@dataclass
class OptimalValueConfig(AnswersConfig):
    """Settings of sampling, and of the value of a prompt, with the names of its paper."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {"beta1", "filter_all_incorrect"}

    num_generations: int = option(8, "Completions sampled of each prompt.")
    beta1: float = option(
        0.5, "Softness of the maximum over rewards: 0 is the maximum, inf the mean."
    )
    filter_all_incorrect: bool = option(False, "Drop prompts whose rewards are all 0.")

    def check_fields(self) -> None:
        """Check the fields as of all preparations that sample answers, and `beta1`.

        Raises:
            BadValue: `beta1` is not a positive number.
        """
        super().check_fields()
        if not 0 < self.beta1 < float("inf"):
            raise BadValue(f"beta1={self.beta1}: expected a number above 0")
