"""Measures and limits the memory of all processes of a program, from the host of its sandbox."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from eval.sandbox.inside.processes import descendants, signal_each

PAGE = os.sysconf("SC_PAGE_SIZE")
OWN = ("Pss_Anon:", "Pss_Shmem:")  # proportional shares; pages of files are not counted
LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()  # the kernel lists children


class MemoryWatch:
    """A limit on the memory of a sandbox's programs; create it while no program runs."""

    def __init__(self, sandbox: int, max_bytes: int):
        self.sandbox = sandbox
        self.max_bytes = max_bytes
        self.own = {sandbox, *processes_below(sandbox)}
        self.warm = max(map(unshared_at_most, self.own))  # every program starts as a copy of this

    def enforce(self) -> bool:
        """Kill the program's processes if they use more than `max_bytes`; return whether so."""
        programs = self.programs()
        limit = self.max_bytes
        if sum(map(resident, programs)) <= limit or sum(map(self.memory, programs)) <= limit:
            return False
        stopped: set[int] = set()
        while running := self.programs() - stopped:  # stopped processes cannot fork
            signal_each(running, signal.SIGSTOP)
            stopped |= running
        signal_each(stopped, signal.SIGKILL)
        return True

    def programs(self) -> set[int]:
        """Return the processes that do not belong to the sandbox itself."""
        return processes_below(self.sandbox) - self.own

    def memory(self, process: int) -> int:
        """Return the bytes of memory of a process, shared memory in parts.

        If the host may not read these, return an upper bound of its unshared memory less the
        sandbox's.
        """
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        except PermissionError:
            return max(0, unshared_at_most(process) - self.warm)
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(OWN))


def processes_below(ancestor: int) -> set[int]:
    """Return the processes below one; some may be missed while others end."""
    if not LISTED:
        return descendants(ancestor)
    pids: set[int] = set()
    waiting = [ancestor]
    while waiting:
        tasks = Path(f"/proc/{waiting.pop()}/task")
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(tasks):
                children = set(map(int, (tasks / task / "children").read_text().split()))
                waiting += children - pids
                pids |= children
    return pids


def resident(process: int) -> int:
    """Return the bytes of a process in memory, shared or not; 0 after its end."""
    return pages(process)[1]


def unshared_at_most(process: int) -> int:
    """Return the bytes of a process in memory that belong to no file."""
    _, resident_bytes, files, *_ = pages(process)
    return resident_bytes - files


def pages(process: int) -> list[int]:
    """Return the numbers of `/proc/PID/statm`, in bytes."""
    with suppress(FileNotFoundError, ProcessLookupError):
        numbers = Path(f"/proc/{process}/statm").read_text().split()
        return [PAGE * int(number) for number in numbers]
    return [0] * 7
