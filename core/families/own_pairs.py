"""Preparations that sample answers of a model and make preference pairs of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from core.families.family import Making, Row
from core.families.rejection import RejectionSampling

if TYPE_CHECKING:  # torch and transformers, see `core.families.family`
    from core.configs.base import BaseConfig
    from core.preparations.own_pairs import OwnPairsConfig


class OwnPairs(RejectionSampling):
    """Family of preparations that make a pair of two sampled answers of each prompt."""

    name = "own-pairs"
    gives = ("chosen", "rejected", "flipped")
    trained_by = "pairs of own answers"

    def config_class(self) -> "type[OwnPairsConfig]":
        """Import the config class."""
        from core.preparations.own_pairs import OwnPairsConfig

        return OwnPairsConfig

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return the prompts that have a pair, with it.

        Raises:
            BadValue: no prompt has a pair, and what `pair_rows` refuses.
        """
        from core.collect.own_pairs import pair_rows

        config = cast("OwnPairsConfig", making.config)
        return pair_rows(making.sampler, config, making.rewards, making.rows)

    def batches(
        self, config: "BaseConfig", rows: int, processes: int, share: Mapping[str, int]
    ) -> str:
        """Describe how many answers are sampled, and which of them make pairs."""
        del processes, share
        from core.preparations.own_pairs import PAIRINGS

        c = cast("OwnPairsConfig", config)
        prompts = min(rows, c.num_prompts or rows)
        flipped = f", {c.flipped_share:.0%} of them flipped" if c.flipped_share else ""
        is_rejecting = c.rejection_beta is not None
        kept = f", of which rejection accepts {c.num_accepted}" if is_rejecting else ""
        return (
            f"Sampling\n  {prompts:,} prompts x {c.num_generations} answers{kept}, at most one "
            f"pair of a prompt{flipped}: {PAIRINGS[c.pair_by].doc}"
        )
