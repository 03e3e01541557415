"""Keeps `repro clean` apart from commands that work in runs/."""

import fcntl
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

from core.records.places import root
from eval.errors import BadValue

LOCK = ".lock"


@contextmanager
def working_in_runs() -> Generator[None]:
    """Hold a shared lock on runs/, and write into its file who does.

    The system releases the lock when the process ends, however it ends.
    """
    with _lock_file() as file:
        with suppress(BlockingIOError):  # nobody works here: what ended commands wrote is dropped
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
        fcntl.flock(file, fcntl.LOCK_SH)  # waits for a `repro clean`
        words = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
        file.write(f"{os.getpid()} {socket.gethostname()} {ascii(words)[1:-1]}\n")
        file.flush()
        yield


@contextmanager
def alone_in_runs() -> Generator[None]:
    """Hold the lock on runs/ exclusively.

    Raises:
        BadValue: commands work there; the message names them.
    """
    with _lock_file() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            workers = ", ".join(_workers(file)) or "another command"
            raise BadValue(
                f"{root() / 'runs'} is in use by {workers}: wait until it ends, or end it"
            ) from error
        file.truncate(0)
        yield


def _lock_file() -> TextIOWrapper:
    """Open the file of the lock."""
    path = root() / "runs" / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="utf-8", errors="replace")


def _workers(file: TextIOWrapper) -> list[str]:
    """Return the processes that wrote that they work here, without those that have ended."""
    file.seek(0)
    found: list[str] = []
    for line in file.read().splitlines():
        pid, _, rest = line.partition(" ")
        host, _, words = rest.partition(" ")
        if pid.isdigit() and (host != socket.gethostname() or _is_alive(int(pid))):
            found.append(f"process {pid} on {host} ({words})")
    return list(dict.fromkeys(found))


def _is_alive(pid: int) -> bool:
    """Return whether a process of this machine has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
