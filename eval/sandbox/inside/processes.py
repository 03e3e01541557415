"""Finds and ends the processes that a program started."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress


def end_program(program: int) -> int:
    """End every process that a program started, and return the program's wait status."""
    program_status = 0
    while True:
        end_all()
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return program_status
        program_status = status if pid == program else program_status


def end_all() -> None:
    """Kill all other processes if this is process 1, else all descendants."""
    if os.getpid() == 1:
        signal_each([-1], signal.SIGKILL)
    else:
        end_below(os.getpid())


def end_below(ancestor: int) -> None:
    """Kill all descendants, after stopping them so that they cannot fork."""
    stopped: set[int] = set()
    while running := descendants(ancestor) - stopped:
        signal_each(running, signal.SIGSTOP)
        stopped |= running
    signal_each(stopped, signal.SIGKILL)


def end_tree(ancestor: int) -> None:
    """Kill a process and its descendants; the process, which adopts orphans, is killed last."""
    signal_each([ancestor], signal.SIGSTOP)
    while descendants(ancestor):  # killed processes take a moment to end
        end_below(ancestor)
        time.sleep(0.01)
    signal_each([ancestor], signal.SIGKILL)


def signal_each(pids: Iterable[int], number: int) -> None:
    """Send a signal to each process; processes that have ended are skipped."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(ancestor: int) -> set[int]:
    """Return the ids of live processes below `ancestor`, orphans that it adopted included."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                parents[int(name)] = int(parent)
    pids: set[int] = set()
    children = {ancestor}
    while children:
        children = {pid for pid, parent in parents.items() if parent in children} - pids
        pids |= children
    return pids


def threads_of(uid: int) -> int:
    """Return how many threads of this user the process limit counts; 0 in a PID namespace."""
    count = 0
    if os.path.isdir("/proc/self"):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count
