"""Ctrl-C outside of a command: while modules are imported, and when the program ends."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

INTERRUPTED = 130  # the shell's code for a program that Ctrl-C ended
SPAWNED = "--multiprocessing-fork"  # an argument of a process that multiprocessing started


def exit_at_once(*_: object) -> None:
    """Exit without a word and without cleaning up; a handler of SIGINT."""
    os._exit(INTERRUPTED)


def exit_on_interrupt() -> None:
    """Let Ctrl-C end the program `repro` at once; changes nothing of a program that imports us."""
    ours = Path(sys.argv[0]).name in ("repro", "-m") and SPAWNED not in sys.orig_argv
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, exit_at_once)


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C raise KeyboardInterrupt meanwhile, if it would end the program at once."""
    if signal.getsignal(signal.SIGINT) is not exit_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, exit_at_once)
