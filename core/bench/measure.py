"""The result of a benchmark, and functions that measure time and memory."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Required, TypedDict, Unpack

SHARE = "share"  # the unit of what part of a limit is reached


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measured quantity in `unit`: ours, and the peer's from the same run if there is one.

    A point of a curve has the curve's name, and its position on the axis is `at`. A requirement is
    a ratio of `at_least`, or a value of ours of `at_most`.
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
        """The peer's value over ours, or ours over the peer's for rates, where more is better.

        A share of a limit has no ratio; it would equal that of its rate.
        """
        if self.theirs is None or self.unit == SHARE:
            return None
        return self.ours / self.theirs if self.unit.endswith("/s") else self.theirs / self.ours

    @property
    def met(self) -> bool | None:
        """True if the requirement is met; None without one."""
        if self.at_least is not None and self.ratio is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ours <= self.at_most


class MeasureFields(TypedDict, total=False):
    """The fields of a measure beside its values, see `Measure`."""

    name: Required[str]
    unit: Required[str]
    peer: str
    at: int
    at_least: float | None
    at_most: float


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of one call, in seconds."""
    start = perf_counter()
    work()
    return perf_counter() - start


def cpu_seconds(work: Callable[[], object]) -> list[float]:
    """Return the CPU time of one call in seconds, as a list for `in_turn`."""
    start = process_time()
    work()
    return [process_time() - start]


def median_seconds(work: Callable[[], object], times: int) -> float:
    """Return the median wall time of several calls, in seconds."""
    return median(seconds(work) for _ in range(times))


def peak_memory() -> float:
    """Return the peak memory of this process in GB, as Linux counts it.

    Unlike `ru_maxrss`, it does not start at the memory of the parent process.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status)
    return int(kilobytes) * 1024 / 1e9


def in_turn(
    ours: Callable[[], Sequence[float]],
    theirs: Callable[[], Sequence[float]],
    rounds: int,
    **fields: Unpack[MeasureFields],
) -> Measure:
    """Run both sides in turn for `rounds` rounds and return their medians as a measure.

    Args:
        ours: Returns measurements of our side.
        theirs: Returns measurements of the peer.
        rounds: Number of rounds.
        fields: The other fields of the measure.
    """
    measurements = [(ours(), theirs()) for _ in range(rounds)]
    return Measure(
        ours=median(value for values, _ in measurements for value in values),
        theirs=median(value for _, values in measurements for value in values),
        **fields,
    )


def several_in_turn(
    ours: Callable[[], Mapping[str, float]],
    theirs: Callable[[], Mapping[str, float]],
    rounds: int,
    rows: Mapping[str, MeasureFields],
    peer: str,
) -> list[Measure]:
    """Run both sides in turn and return the medians of several quantities as measures.

    Args:
        ours: Returns measurements of our side by quantity.
        theirs: Returns measurements of the peer by quantity.
        rounds: Number of rounds.
        rows: The fields of the measure of each quantity.
        peer: The name of the peer.
    """
    measurements = [(ours(), theirs()) for _ in range(rounds)]
    return [
        Measure(
            ours=median(our_values[key] for our_values, _ in measurements),
            theirs=median(their_values[key] for _, their_values in measurements),
            **{**fields, "peer": peer},
        )
        for key, fields in rows.items()
    ]
