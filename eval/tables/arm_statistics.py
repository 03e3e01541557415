"""Data classes of the table of what the mechanisms of each arm did in training."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A statistic of an arm: its mean over the seeds at the start and the end of training.

    `low` and `high` are the lowest and the highest seed at the end. `start` is None for a mean over
    the whole training.
    """

    start: float | None
    end: float
    low: float
    high: float
    places: int


@dataclass(frozen=True)
class ArmRow:
    """An arm of a paper with its seeds and statistics, None for those that it does not log."""

    paper: str
    arm: str
    seeds: int
    cells: tuple[Measured | None, ...]


@dataclass(frozen=True)
class ArmStatistics:
    """The arms of one or more papers, and the titles of the statistics that any of them logs."""

    titles: tuple[str, ...]
    rows: tuple[ArmRow, ...]
