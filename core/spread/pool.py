"""Runs commands in several processes at a time, each with one thread."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from time import sleep

from core.spread.preloaded import Forked, can_fork
from eval.errors import ReproError
from eval.terminal import say

# Not the folder where we are, which Python searches first for a module that it runs: a `core` or an
# `eval.py` that somebody has there would be ours.
PYTHON = (sys.executable, "-P")
COMMAND = "core.cli.main"  # the module of the command `repro`
REPRO = (*PYTHON, "-m", COMMAND)
# One thread, and no progress bars, whose every state would be a line.
OF_CHILDREN = {"OMP_NUM_THREADS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}


class FailedUnit(ReproError, RuntimeError):
    """The failure of a command in a process of its own, with that process's exit code."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message)
        self.exit_code = exit_code if exit_code in (1, 2) else 1


@dataclass(frozen=True)
class Unit:
    """A command, by default of `repro`, and its name in the progress lines."""

    name: str
    arguments: tuple[str, ...]
    program: tuple[str, ...] = REPRO


def stop_all(error: FailedUnit) -> None:
    """Raise the error, so that the first failure ends all units."""
    raise error


def run_units(
    units: Sequence[Unit], jobs: int, failed: Callable[[FailedUnit], None] = stop_all
) -> None:
    """Run every unit in a process of its own, at most `jobs` at a time.

    Args:
        units: The commands.
        jobs: The largest number of processes.
        failed: Called with the failure of a unit; by default it raises the failure.

    Raises:
        FailedUnit: a unit failed; the others have been stopped and can continue.
    """
    waiting, running = list(units), dict[Unit, "Child"]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                unit = waiting.pop(0)
                running[unit] = Child(unit)
            for unit in [unit for unit, child in running.items() if child.has_ended]:
                failure = running.pop(unit).failure()
                if failure is not None:
                    failed(failure)
                say(f"{len(waiting)} wait, {len(running)} run")
            sleep(0.05)
    finally:
        for child in running.values():
            child.stop()


def start_process(unit: Unit, stderr: int) -> subprocess.Popen[bytes] | Forked:
    """Start a unit in a session of its own: Ctrl-C reaches its parent alone, which stops it.

    A command of `repro` is forked from a process that has imported torch where that is as good
    (`can_fork`).

    Args:
        unit: The command.
        stderr: File descriptor that its standard error is written to.
    """
    environment = {**os.environ, **OF_CHILDREN}
    if unit.program == REPRO and can_fork(environment):
        return Forked(COMMAND, unit.arguments, environment, stderr)
    return subprocess.Popen(
        [*unit.program, *unit.arguments],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        env=environment,
        start_new_session=True,
    )


class Child:
    """A running unit, whose stderr is printed under its name."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.last = ""
        receiving, sending = os.pipe()
        self.lines = os.fdopen(receiving, encoding="utf-8", errors="replace")
        try:
            self.process = start_process(unit, sending)
        finally:
            os.close(sending)
        self.reader = Thread(target=self._pass_on, daemon=True)
        self.reader.start()

    @property
    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self.process.poll() is not None

    def finish(self) -> int:
        """Wait until all lines have been read, and return the exit code."""
        self.reader.join()
        self.lines.close()
        return self.process.wait()

    def failure(self) -> FailedUnit | None:
        """Wait for the end, and return the error of a process that failed."""
        code = self.finish()
        if code == 0:
            return None
        return FailedUnit(f"{self.unit.name}: {self.last or f'exit code {code}'}", code)

    def stop(self) -> None:
        """Interrupt the process as Ctrl-C would, and wait for it; kill it after a minute."""
        if not self.has_ended:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.finish()

    def _pass_on(self) -> None:
        for line in self.lines:
            self.last = line.rstrip() or self.last
            say(f"[{self.unit.name}] {line.rstrip()}")


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent process ends."""
    if sys.platform == "linux":
        from ctypes import CDLL

        set_death_signal = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>
        CDLL(None).prctl(set_death_signal, signal.SIGKILL)
