"""Preparations that sample solutions of a model and judge them, for models that score solutions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from core.families.family import Making, Row
from core.families.rejection import RejectionSampling

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.own_solutions import OwnSolutionsConfig


class OwnSolutions(RejectionSampling):
    """Family of preparations that make a row of each sampled solution, with labels of its steps."""

    name = "own-solutions"
    columns = ("prompt", "question")
    gives = ("completions", "labels", "completion", "label")
    trained_by = "labels of own solutions"
    unused = (*RejectionSampling.unused, "rewards")
    roles = ()

    def config_class(self) -> "type[OwnSolutionsConfig]":
        """Import the config class."""
        from core.preparations.own_solutions import OwnSolutionsConfig

        return OwnSolutionsConfig

    def rows(self, making: Making) -> list[Row]:
        """Sample solutions of the prompts; return a row of each.

        Raises:
            BadValue: what `judged_rows` refuses.
        """
        from core.collect.own_solutions import judged_rows

        return judged_rows(making.sampler, cast("OwnSolutionsConfig", making.config), making.rows)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how many solutions are sampled, and what the labels of their steps say."""
        del processes, share
        from core.preparations.own_solutions import LABELS

        c = cast("OwnSolutionsConfig", config)
        prompts = min(rows, c.num_prompts or rows)
        return (
            f"Sampling\n  {prompts:,} prompts x {c.num_generations} solutions; the label of a step "
            f"says whether {LABELS[c.labels_by].doc}"
        )
