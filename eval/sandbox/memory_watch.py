"""How much memory a program has in all of its processes, as the host of its sandbox sees it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from eval.sandbox.inside.processes import descendants, signal_each

PAGE = os.sysconf("SC_PAGE_SIZE")
OWN = ("Pss_Anon:", "Pss_Shmem:")  # what is shared counts in parts; files can be dropped
LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()  # by the kernel; else searched


class MemoryWatch:
    """Ends the programs of a sandbox that have more than `most` bytes; made while none runs."""

    def __init__(self, sandbox: int, most: int):
        self.sandbox = sandbox
        self.most = most
        self.own = {sandbox, *below(sandbox)}
        self.warm = max(map(unshared_at_most, self.own))  # what every program begins as a copy of

    def exceeded(self) -> bool:
        """Whether a program had more than it may; then all of its processes have been killed."""
        found = self.programs()
        if sum(map(resident, found)) <= self.most or sum(map(self.memory, found)) <= self.most:
            return False
        stopped: set[int] = set()
        while more := self.programs() - stopped:  # what is stopped cannot fork
            signal_each(more, signal.SIGSTOP)
            stopped |= more
        signal_each(stopped, signal.SIGKILL)
        return True

    def programs(self) -> set[int]:
        """The processes that are not the sandbox's own."""
        return below(self.sandbox) - self.own

    def memory(self, process: int) -> int:
        """Bytes of a process; where the host may not see what it shares, all but the sandbox's."""
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        except PermissionError:
            return max(0, unshared_at_most(process) - self.warm)
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(OWN))


def below(ancestor: int) -> set[int]:
    """The processes below one; some may be missed while others end."""
    if not LISTED:
        return descendants(ancestor)
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        tasks = Path(f"/proc/{waiting.pop()}/task")
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(tasks):
                children = set(map(int, (tasks / task / "children").read_text().split()))
                waiting += children - found
                found |= children
    return found


def resident(process: int) -> int:
    """Bytes of a process in memory, whether shared or not; 0 when it has ended."""
    return pages(process)[1]


def unshared_at_most(process: int) -> int:
    """Bytes of a process in memory that belong to no file."""
    _, all_of_it, files, *_ = pages(process)
    return all_of_it - files


def pages(process: int) -> list[int]:
    """The numbers of `/proc/PID/statm`, in bytes."""
    with suppress(FileNotFoundError, ProcessLookupError):
        numbers = Path(f"/proc/{process}/statm").read_text().split()
        return [PAGE * int(number) for number in numbers]
    return [0] * 7
