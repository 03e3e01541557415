"""Filters by difficulty: rows of the prompts that a model answers correctly at a certain rate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from core.families.family import Making, Row
from core.families.rejection import RejectionSampling

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.difficulty import DifficultyConfig


class DifficultyFilter(RejectionSampling):
    """Family of preparations that sample answers and keep prompts of a certain pass rate."""

    name = "difficulty-filter"
    gives = ("pass_rate",)
    trained_by = "a filter by difficulty"

    def config_class(self) -> "type[DifficultyConfig]":
        """Import the config class."""
        from core.preparations.difficulty import DifficultyConfig

        return DifficultyConfig

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return the prompts whose pass rate is in range.

        Raises:
            BadValue: no prompt is in range, and what `rows_of_difficulty` refuses.
        """
        from core.collect.difficulty import rows_of_difficulty

        config = cast("DifficultyConfig", making.config)
        return rows_of_difficulty(making.sampler, config, making.rewards, making.rows)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how many answers are sampled."""
        del processes, share
        c = cast("DifficultyConfig", config)
        prompts = min(rows, c.num_prompts or rows)
        return (
            f"Sampling\n  {prompts:,} prompts x {c.num_generations} answers; the prompts with more "
            f"than {c.rate_above:g} and at most {c.rate_at_most:g} of them right are kept"
        )
