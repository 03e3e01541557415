"""Optimal values of prompts: what each would be worth to the best policy near a model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from core.families.family import Making, Row
from core.families.rejection import RejectionSampling

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.optimal_value import OptimalValueConfig


class OptimalValue(RejectionSampling):
    """Family of preparations that sample answers to estimate values, the first stage of A*-PO."""

    name = "optimal-value"
    gives = ("optimal_value",)
    trained_by = "optimal values"
    profiles: Mapping[str, Mapping[str, object]] = {
        **RejectionSampling.profiles,
        "cpu": {**RejectionSampling.profiles["cpu"], "num_prompts": 1024},
        "gpu": {**RejectionSampling.profiles["gpu"], "num_prompts": 4096},
    }

    def config_class(self) -> "type[OptimalValueConfig]":
        """Import the config class."""
        from core.preparations.optimal_value import OptimalValueConfig

        return OptimalValueConfig

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return rows with the optimal value of each prompt.

        Raises:
            BadValue: no prompt has a rewarded answer, and what `rows_of_values` refuses.
        """
        from core.collect.optimal_values import rows_of_values

        config = cast("OptimalValueConfig", making.config)
        return rows_of_values(making.sampler, config, making.rewards, making.rows)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how many answers are sampled."""
        del processes, share
        c = cast("OptimalValueConfig", config)
        prompts = min(rows, c.num_prompts or rows)
        return f"Sampling\n  {prompts:,} prompts x {c.num_generations} answers"
