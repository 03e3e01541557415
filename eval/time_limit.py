"""Ends work of the main thread that uses more processor time than it may.

A timer of the kernel interrupts Python code, and C code that looks for signals, as `re` does while
it matches. What waits uses no processor time, and work in other threads cannot be interrupted.
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

TICK_S = 0.05  # processor time of all threads between two looks at the main thread's


@dataclass(eq=False)
class Limit:
    """A limit of processor time, and the main thread's time at which its current work passes it."""

    seconds: float
    deadline: float = inf


class Overrun(BaseException):
    """Interrupts work that passed a limit; not caught by the `except Exception` of that work."""

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
    """Return the work's result for each item, or `late` where it used more processor time.

    Without a limit where `can_interrupt` is false.
    """
    if seconds == inf or not can_interrupt():
        return [work(item) for item in items]
    limit = Limit(seconds)
    results: list[Result | Late] = []
    with timed(limit):
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
def timed(limit: Limit) -> Iterator[None]:
    """Look at the limit, and at those outside of it, at every tick of a timer."""
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
    """Raise `Overrun` of the outermost limit that is passed, and again after as much time."""
    now = thread_time()
    for limit in ACTIVE:
        if limit.deadline <= now:
            limit.deadline = now + limit.seconds
            raise Overrun(limit)
