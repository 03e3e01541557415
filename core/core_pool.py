"""Pool of forked processes, one thread each, for independent work on a CPU.

A small model gains little from a second thread.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from eval.sandbox.inside import kernel

Job = TypeVar("Job")
Result = TypeVar("Result")

FORKS = sys.platform == "linux"  # elsewhere forking a process with threads may not work


def map_on_cores(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int
) -> Iterator[Result]:
    """Yield `work(job)` of each job in order, computed in so many processes.

    Each process is a fork of this one: it has the model without receiving it, and changes that
    `work` makes there are lost. If each job brings its own random generator, the results do not
    depend on the number of processes.

    Raises:
        BrokenProcessPool: a process was killed, as when memory runs out.
    """
    processes = min(processes, len(jobs)) if FORKS else 1
    if processes < 2:
        yield from map(work, jobs)
        return
    # Threads that a tokenizer has started do not exist in forked processes.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    forks = {"mp_context": get_context("fork"), "initializer": init_worker, "initargs": (work,)}
    with ProcessPoolExecutor(processes, **forks) as pool:
        yield from pool.map(run_job, jobs)


class WorkerTask:
    """Holder of a worker's function, which a forked process can inherit but not receive."""

    work: Callable[..., object]  # of a job of the caller's type


def init_worker(work: Callable[..., object]) -> None:
    """Set up a forked worker: one thread, default Ctrl-C handling, killed when its parent ends."""
    os.environ["OMP_NUM_THREADS"] = "1"
    if torch := sys.modules.get("torch"):  # else it reads the variable when it is imported
        torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
    WorkerTask.work = staticmethod(work)


def run_job(job: object) -> Any:  # Any: the result type of the caller
    """Return the worker's result for one job."""
    return WorkerTask.work(job)
