"""Ends a command whose surroundings fail: closed outputs, a deleted folder, a full machine."""

import errno
import os
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

import typer

from core.records.files import NO_SPACE
from eval.errors import ReproError
from eval.terminal import say

CLOSED_OUTPUT = 141  # the shell's code for a program that wrote to a closed pipe
# What no other path would mend: the machine has no room, or its disk fails.
MACHINE = {errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, *NO_SPACE}


@contextmanager
def ending_in_a_line() -> Generator[None]:
    """End with an exit code and at most one line if the surroundings of a command fail.

    Raises:
        Exit: an output is closed, the working directory is deleted, or the machine is full.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and discard_closed_outputs():
            raise typer.Exit(CLOSED_OUTPUT) from error
        if (message := reason(error)) is None:
            raise
        say(message)
        raise typer.Exit(ReproError.exit_code) from error


def reason(error: OSError) -> str | None:
    """Return the message for an error that no other path would avoid; None for other errors."""
    if isinstance(error, FileNotFoundError) and is_folder_gone():
        return "the working directory does not exist any more; change to another one"
    if error.errno in MACHINE:
        return f"{error.strerror}; make room, and give the same command again"
    return None


def is_folder_gone() -> bool:
    """Return whether the working directory was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def discard_closed_outputs() -> bool:
    """Redirect closed outputs to the null device; return whether any output is closed."""
    closed = [stream for stream in (1, 2) if is_closed(stream)]
    for stream in closed:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), stream)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return bool(closed)


def is_closed(descriptor: int) -> bool:
    """Return whether a descriptor is a pipe or socket whose other end is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def ignore_empty_terminal() -> None:
    """Unset a terminal size of 0, at which rich prints nothing, also for child processes."""
    for name in ("COLUMNS", "LINES"):
        if os.environ.get(name, "").strip("0") == "":
            os.environ.pop(name, None)
