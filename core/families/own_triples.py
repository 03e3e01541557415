"""Preparations that make pairs of a model's own answers, and a gold answer beside each of them."""

from typing import cast

from core.families.family import Making, Row
from core.families.own_pairs import OwnPairs


class OwnTriples(OwnPairs):
    """Family of preparations that make pairs with a gold answer, as TPO reads them."""

    name = "own-triples"
    gives = (*OwnPairs.gives, "reference")
    trained_by = "triples of own answers"

    def rows(self, making: Making) -> list[Row]:
        """Sample answers to the prompts; return the prompts that have a pair and a gold answer.

        Raises:
            BadValue: no prompt has them, and what `pair_rows` refuses.
        """
        from core.collect.own_pairs import pair_rows
        from core.preparations.own_pairs import OwnPairsConfig

        config = cast(OwnPairsConfig, making.config)
        return pair_rows(making.sampler, config, making.rewards, making.rows, with_gold=True)
