"""Independent batches on the cores of a CPU: one small model gains little from a second thread."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from eval.sandbox.inside import kernel

Job = TypeVar("Job")
Result = TypeVar("Result")

FORKS = sys.platform == "linux"  # elsewhere a copy of a process with threads may not work


def each_on_a_core(work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
    """`work` of each job, in order, in as many processes as torch may use threads.

    Each process is a copy of this one, so it has the model without being sent it, and what `work`
    changes there is lost. A job brings its own random generator; then the results do not depend on
    how many processes there are.

    Raises:
        BrokenProcessPool: a process was killed, as when memory runs out.
    """
    processes = min(torch.get_num_threads(), len(jobs)) if FORKS else 1
    if processes < 2:
        yield from map(work, jobs)
        return
    # threads that a tokenizer has started do not exist in the copies
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    forks = {"mp_context": get_context("fork"), "initializer": begin, "initargs": (work,)}
    with ProcessPoolExecutor(processes, **forks) as pool:
        yield from pool.map(run, jobs)


class Task:
    """What a copy does: a function within a function can be inherited, but not sent."""

    work: Callable[[Any], Any]


def begin(work: Callable[[Any], Any]) -> None:
    """Set a copy up: one thread, and no life beyond Ctrl-C or the end of the original."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.prctl(kernel.PDEATHSIG, signal.SIGKILL)
    Task.work = staticmethod(work)


def run(job: Any) -> Any:  # Any: what the jobs are is the caller's affair
    """The result of a job."""
    return Task.work(job)
