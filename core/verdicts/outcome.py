"""Records that an order leaves: its runs, trials and verdicts."""

from dataclasses import dataclass
from typing import Any

from core.records.record import Record


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The records of an order's runs, of its trials of learning rates, and of the verdicts."""

    runs: list[Record]
    tunings: list[Record]
    claims: Record

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The verdict on every claim of the paper."""
        return self.claims["verdicts"]

    @property
    def refuted(self) -> bool:
        """Whether any claim was refuted."""
        return any(verdict["verdict"] == "refuted" for verdict in self.verdicts)
