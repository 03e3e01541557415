"""Interrupts work of the main thread that exceeds a limit of processor time.

A kernel timer interrupts Python code, and C code that checks for signals, such as `re` during a
match. Waiting uses no processor time, and work in other threads cannot be interrupted.
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import thread_time
from types import FrameType
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Late = TypeVar("Late")

TICK_S = 0.05  # processor time of all threads between two checks of the main thread's


@dataclass(eq=False)
class Limit:
    """A limit of processor time, and the main thread's time at which its work exceeds it."""

    seconds: float
    deadline: float = inf


class Overrun(BaseException):
    """Raised in work that exceeded a limit; `except Exception` in that work does not catch it."""

    def __init__(self, limit: Limit):
        super().__init__(f"more than {limit.seconds} s of processor time")
        self.limit = limit


ACTIVE: list[Limit] = []  # of the main thread, the outermost first


def can_interrupt() -> bool:
    """Return whether a timer can interrupt the caller: on this system, in this thread."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def each_within(
    seconds: float, work: Callable[[Item], Result], items: Iterable[Item], late: Late
) -> list[Result | Late]:
    """Return the result of `work` for each item, or `late` for items that exceeded the limit.

    If `can_interrupt` is false, the limit is not applied.

    Args:
        seconds: Limit of processor time for each item.
        work: The function that is applied to each item.
        items: The items.
        late: The result of an item that exceeded the limit.
    """
    if seconds == inf or not can_interrupt():
        return [work(item) for item in items]
    limit = Limit(seconds)
    results: list[Result | Late] = []
    with watch_limit(limit):
        for item in items:
            try:
                limit.deadline = thread_time() + seconds
                result = work(item)
                limit.deadline = inf
            except Overrun as passed:
                limit.deadline = inf
                if passed.limit is not limit:
                    raise
                result = late
            results.append(result)
    return results


@contextmanager
def watch_limit(limit: Limit) -> Iterator[None]:
    """Check this limit and the enclosing ones at every tick of a timer while the block runs."""
    depth = len(ACTIVE)
    if depth:
        handler, timer = None, (0.0, 0.0)
    else:
        handler = signal.signal(signal.SIGPROF, interrupt)
        signal.siginterrupt(signal.SIGPROF, False)  # calls of the system go on
        timer = signal.setitimer(signal.ITIMER_PROF, TICK_S, TICK_S)
    try:
        ACTIVE.append(limit)
        yield
    finally:
        del ACTIVE[depth:]
        if not depth:
            signal.setitimer(signal.ITIMER_PROF, *timer)
            signal.signal(signal.SIGPROF, signal.SIG_IGN if handler is None else handler)


def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's
    """Raise `Overrun` of the outermost exceeded limit, after extending it by its own duration."""
    now = thread_time()
    for limit in ACTIVE:
        if limit.deadline <= now:
            limit.deadline = now + limit.seconds
            raise Overrun(limit)
