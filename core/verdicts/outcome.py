"""The records that an order leaves: its runs, trials and verdicts."""

from dataclasses import dataclass

from core.records.record import Record
from core.records.verdict_row import VerdictRow


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The records of an order's runs, of its learning-rate trials, and of the verdicts."""

    runs: list[Record]
    tunings: list[Record]
    claims: Record

    @property
    def verdicts(self) -> list[VerdictRow]:
        """The verdict on each claim of the paper."""
        return self.claims["verdicts"]

    @property
    def has_refuted(self) -> bool:
        """True if at least one claim is refuted."""
        return any(verdict["verdict"] == "refuted" for verdict in self.verdicts)
