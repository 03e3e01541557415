"""Lock on runs/ that keeps `repro clean` apart from commands that work there."""

import fcntl
import os
import socket
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path

from core.records.places import root
from eval.errors import BadValue

LOCK = ".lock"


@contextmanager
def working_in_runs() -> Generator[None]:
    """Hold a shared lock on runs/ and write this process and its command to the lock file.

    The system releases the lock when the process ends, however it ends.
    """
    with _lock_file() as file:
        with suppress(BlockingIOError):  # nobody works here: what ended commands wrote is dropped
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
        fcntl.flock(file, fcntl.LOCK_SH)  # waits for a `repro clean`
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
        file.write(f"{os.getpid()} {socket.gethostname()} {ascii(command)[1:-1]}\n")
        file.flush()
        yield


def reading(folder: Path) -> AbstractContextManager[None]:
    """Return the shared lock on runs/ for a folder in it, and a context without effect for others.

    Args:
        folder: A folder that is read for a while, such as that of a model.
    """
    is_here = folder.resolve().is_relative_to((root() / "runs").resolve())
    return working_in_runs() if is_here else nullcontext()


@contextmanager
def alone_in_runs() -> Generator[None]:
    """Hold the lock on runs/ exclusively.

    Raises:
        BadValue: other commands work in runs/; the message names the commands.
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
    """Open the lock file for reading and appending."""
    path = root() / "runs" / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="utf-8", errors="replace")


def _workers(file: TextIOWrapper) -> list[str]:
    """Return a description of each process in the lock file that has not ended."""
    file.seek(0)
    workers: list[str] = []
    for line in file.read().splitlines():
        pid, _, origin = line.partition(" ")
        host, _, command = origin.partition(" ")
        if pid.isdigit() and (host != socket.gethostname() or _is_alive(int(pid))):
            workers.append(f"process {pid} on {host} ({command})")
    return list(dict.fromkeys(workers))


def _is_alive(pid: int) -> bool:
    """Return whether a process of this machine is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
