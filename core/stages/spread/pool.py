"""Runs the units of a paper, several processes at a time, each with one thread."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from time import sleep

from eval.errors import ReproError
from eval.terminal import say

# Not the folder where we are, which Python searches first for a module that it runs: a `core` or an
# `eval.py` that somebody has there would be ours.
PYTHON = (sys.executable, "-P")


class FailedUnit(ReproError, RuntimeError):
    """A run in a process of its own that did not end well; its exit code becomes ours."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code if exit_code in (1, 2) else 1


@dataclass(frozen=True)
class Unit:
    """One command of ours, and its name in the progress lines."""

    name: str
    arguments: tuple[str, ...]
    program: tuple[str, ...] = (*PYTHON, "-m", "core.cli.main")


def stop_all(error: FailedUnit) -> None:
    """End at the first failure."""
    raise error


def run_units(
    units: Sequence[Unit], jobs: int, failed: Callable[[FailedUnit], None] = stop_all
) -> None:
    """Run every unit in a process of its own, at most `jobs` at a time.

    Raises:
        FailedUnit: one failed, unless `failed` does something else with that; the others that were
            running have been stopped and can continue.
    """
    waiting, running = list(units), dict[Unit, "Child"]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                unit = waiting.pop(0)
                running[unit] = Child(unit)
            for unit in [unit for unit, child in running.items() if child.ended]:
                child = running.pop(unit)
                if (code := child.finish()) != 0:
                    failed(FailedUnit(f"{unit.name}: {child.last or f'exit code {code}'}", code))
                say(f"{len(waiting)} wait, {len(running)} run")
            sleep(0.05)
    finally:
        for child in running.values():
            child.stop()


class Child:
    """A running unit; its progress lines are passed on under its name."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.last = ""
        self.process = subprocess.Popen(
            [*unit.program, *unit.arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches us alone, and we stop it in order
        )
        self.reader = Thread(target=self._pass_on, daemon=True)
        self.reader.start()

    @property
    def ended(self) -> bool:
        """Whether the process is over."""
        return self.process.poll() is not None

    def finish(self) -> int:
        """Its exit code, once all of its lines have been read."""
        self.reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return self.process.wait()

    def stop(self) -> None:
        """Interrupt it as Ctrl-C would, and wait for it."""
        if not self.ended:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.finish()

    def _pass_on(self) -> None:
        if self.process.stderr is None:
            return
        for line in self.process.stderr:
            self.last = line.rstrip() or self.last
            say(f"[{self.unit.name}] {line.rstrip()}")


def die_with_parent() -> None:
    """Ask Linux to end this process when the one that started it is gone, killed or not."""
    if sys.platform == "linux":
        from ctypes import CDLL

        set_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
        CDLL(None).prctl(set_death_signal, signal.SIGKILL)
