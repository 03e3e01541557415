"""Settings of a filter by difficulty: how pass rates are measured, and their allowed range."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.preparations.sampled_answers import AnswersConfig
from eval.errors import BadValue


@dataclass
class DifficultyConfig(AnswersConfig):
    """Settings of sampling, and of the range of pass rates of the selected prompts.

    The defaults drop only prompts that are never answered correctly.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {"rate_above", "rate_at_most"}

    rate_above: float = option(0.0, "Share of right completions that a prompt must exceed.")
    rate_at_most: float = option(1.0, "Greatest share of right completions of a prompt.")

    def check_fields(self) -> None:
        """Check the fields as of all preparations that sample answers, and the bounds.

        Raises:
            BadValue: no prompt can lie between the bounds.
        """
        super().check_fields()
        if not (
            self.rate_above < self.rate_at_most and self.rate_at_most >= 0 and self.rate_above < 1
        ):
            raise BadValue(
                f"rate_above={self.rate_above}, rate_at_most={self.rate_at_most}: expected shares, "
                "the first below the second"
            )
