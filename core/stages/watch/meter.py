"""Progress of a piece of work: a live bar on a terminal, else plain lines."""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, TypeAlias, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from eval.terminal import say, visible

LINE_S = 10.0  # seconds between two plain lines

Watch: TypeAlias = Callable[[int, int], None]  # called with how much is done, and of how much
Thing = TypeVar("Thing", covariant=True)


class Meter:
    """The display of the progress of one piece of work, of which `first` units were done before.

    Without a terminal a plain line is printed every ten seconds, and whenever `now` is set.
    """

    def __init__(self, name: str, *, first: int = 0):
        self.name = name
        self.first = first
        self.began = self.last_line = monotonic()
        self.bar: Progress | None = None
        if sys.stderr.isatty():
            self.bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[text]}", markup=False),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.bar.add_task(visible(name), total=None, completed=first, text="")
            self.bar.start()

    def show(self, done: int, total: int, text: str = "", *, now: bool = False) -> None:
        """Show the number of finished units and a text.

        Without a progress bar a line is printed, and none within `LINE_S` seconds of the last one
        unless `now`; the last unit is no exception.
        """
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done, total=total, text=visible(text))
        elif now or monotonic() - self.last_line > LINE_S:
            self.last_line = monotonic()
            remaining = f"{self.seconds_left(done, total):.0f} s left" if done > self.first else ""
            say("  ".join(filter(None, [f"{self.name}: {done}/{total}", text, remaining])))

    def seconds_left(self, done: int, total: int) -> float:
        """Return the estimated seconds until the end, at the pace so far."""
        return (monotonic() - self.began) / (done - self.first) * (total - done)

    def close(self) -> None:
        """Stop the bar; its last state stays on the screen."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


@contextmanager
def open_meter(name: str) -> Generator[Watch]:
    """Show a meter during a block, which is given the function that updates the meter."""
    meter = Meter(name)
    try:
        yield meter.show
    finally:
        meter.close()


class Things(Sized, Iterable[Thing], Protocol[Thing]):
    """A sized iterable."""


def track(name: str, things: Things[Thing], label_of: Callable[[Thing], str]) -> Iterator[Thing]:
    """Iterate over things, with a meter that shows the name of the present one."""
    meter = Meter(name)
    try:
        for count, thing in enumerate(things):
            meter.show(count, len(things), label_of(thing))
            yield thing
        meter.show(len(things), len(things))
    finally:
        meter.close()
