"""Settings of a filter by difficulty: how it is measured, and which prompts are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.answers import AnswersConfig
from core.option import option
from eval.errors import BadValue


@dataclass
class DifficultyConfig(AnswersConfig):
    """What is sampled, and which share of right completions a prompt is kept with.

    With the defaults only prompts that are never answered right are left out.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {"rate_above", "rate_at_most"}

    rate_above: float = option(0.0, "Share of right completions that a prompt must exceed.")
    rate_at_most: float = option(1.0, "Greatest share of them that a prompt may have.")

    def check_fields(self) -> None:
        """As of all that samples answers; then refuse bounds that no prompt lies between.

        Raises:
            BadValue: with both of them.
        """
        super().check_fields()
        if not (
            self.rate_above < self.rate_at_most and self.rate_at_most >= 0 and self.rate_above < 1
        ):
            raise BadValue(
                f"rate_above={self.rate_above}, rate_at_most={self.rate_at_most}: expected shares, "
                "the first below the second"
            )
