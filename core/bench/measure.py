"""What a benchmark returns, and how often it looks."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any  # of a measure's fields, which differ in type

SHARE = "share"  # the unit of what part of a limit is reached


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One measured quantity in `unit`: ours, and the peer's from the same run if there is one.

    A point of a curve has the curve's name and its place `at`. What is to be met: a ratio of
    `at_least`, or ours of `at_most`.
    """

    name: str
    unit: str
    ours: float
    theirs: float | None = None
    peer: str | None = None
    at: int | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float | None:
        """The peer's number over ours; of a rate, of which more is better, ours over the peer's.

        A share of a limit has none: it would be that of its rate again.
        """
        if self.theirs is None or self.unit == SHARE:
            return None
        return self.ours / self.theirs if self.unit.endswith("/s") else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """Whether what is to be met is; None where nothing is."""
        if self.at_least is not None and self.ratio is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ours <= self.at_most


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = perf_counter()
    work()
    return perf_counter() - start


def cpu_seconds(work: Callable[[], object]) -> list[float]:
    """CPU time of one call, for `in_turn`."""
    start = process_time()
    work()
    return [process_time() - start]


def median_seconds(work: Callable[[], object], times: int) -> float:
    """Median wall time of several calls."""
    return median(seconds(work) for _ in range(times))


def peak_memory() -> float:
    """The most memory that this process has held, in GB, as Linux counts it.

    Unlike `ru_maxrss` it does not begin with what the process that started this one held.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status)
    return int(kilobytes) * 1024 / 1e9


def in_turn(
    ours: Callable[[], Sequence[float]],
    theirs: Callable[[], Sequence[float]],
    rounds: int,
    **named: Any,
) -> Measure:
    """Medians over rounds in which both sides follow each other; `named`: the measure's fields."""
    both = [(ours(), theirs()) for _ in range(rounds)]
    return Measure(
        ours=median(value for values, _ in both for value in values),
        theirs=median(value for _, values in both for value in values),
        **named,
    )


def several_in_turn(
    ours: Callable[[], Mapping[str, float]],
    theirs: Callable[[], Mapping[str, float]],
    rounds: int,
    rows: Mapping[str, Mapping[str, Any]],
    **shared: Any,
) -> list[Measure]:
    """The same for several quantities of each run; `rows`: the fields of the measure of each."""
    both = [(ours(), theirs()) for _ in range(rounds)]
    return [
        Measure(
            ours=median(one[key] for one, _ in both),
            theirs=median(other[key] for _, other in both),
            **shared,
            **fields,
        )
        for key, fields in rows.items()
    ]
