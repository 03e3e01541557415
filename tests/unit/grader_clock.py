"""Processor time of grading, wherever it is spent, and workers that begin otherwise."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval.grading import worker


def clock() -> float:
    """Seconds of this process, and of the workers with their forks, running or ended."""
    pids = [w.process.pid for w in worker.POOL if w.process is not None]
    forks = [p for pid in pids for p in map(int, children(pid).split())]
    return time.process_time() + sum(seconds(pid) for pid in pids + forks)


def boot_after(code: str) -> str:
    """The program of a worker that runs code before it serves."""
    boot = worker.BOOT.replace("from eval.grading.serve", f"{code}; from eval.grading.serve")
    assert boot != worker.BOOT
    return boot


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Another deadline of processor time for each text or pair, here and in new workers."""
    with pytest.MonkeyPatch.context() as patch:
        hurried = boot_after(f"import eval.grading.worker as w; w.CPU_S = {seconds}")
        patch.setattr(worker, "BOOT", hurried)
        patch.setattr(worker, "POOL", [worker.Worker()])
        patch.setattr("eval.grading.limited.CPU_S", seconds)
        yield
        worker.stop()


def children(pid: int) -> str:
    """The processes that a worker has forked; none of one that has ended."""
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return ""


def seconds(pid: int) -> float:
    """User and system time, that of ended children included."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
