"""Preparations that make labelled answers of pairs of a model's own answers."""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, cast

from core.families.family import Making, Row
from core.families.own_pairs import OwnPairs

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.own_labels import OwnLabelsConfig


class OwnLabels(OwnPairs):
    """Family of preparations that make labelled answers of pairs, as KTO and BCO read them."""

    name = "own-labels"
    gives = ("completion", "label")
    trained_by = "labels of own answers"

    def config_class(self) -> "type[OwnLabelsConfig]":
        """Import the config class."""
        from core.preparations.own_labels import OwnLabelsConfig

        return OwnLabelsConfig

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return those that make pairs, each with its label.

        Raises:
            BadValue: no prompt has a pair, and what `pair_rows` refuses.
        """
        from core.collect.own_pairs import labelled_answers

        config = cast("OwnLabelsConfig", making.config)
        return labelled_answers(super().rows(making), config.desirable_share, Random(config.seed))

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe the pairs, and how many of their chosen answers are kept."""
        c = cast("OwnLabelsConfig", config)
        pairs = super().batches(config, rows, processes, share)
        return f"{pairs}; {c.desirable_share:.0%} of the chosen answers are kept, each as a row"
