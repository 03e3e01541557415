"""Settings of labelled answers of a model: pairs of them, and which chosen answers are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.preparations.own_pairs import OwnPairsConfig
from eval.errors import BadValue


@dataclass
class OwnLabelsConfig(OwnPairsConfig):
    """Settings of pairs that become labelled answers, and the share of desirable ones kept."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = OwnPairsConfig.ACTS - {"win_rates", "shuffles_rejected"} | {
        "desirable_share"
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {**OwnPairsConfig.AT_LEAST, "desirable_share": 0.0}

    desirable_share: float = option(1.0, "Share of the chosen answers that are kept.")

    def check_fields(self) -> None:
        """Check the fields as of pairs, and the share.

        Raises:
            BadValue: more than all chosen answers would be kept.
        """
        super().check_fields()
        if self.desirable_share > 1:
            raise BadValue(f"desirable_share={self.desirable_share}: expected a share, at most 1")
