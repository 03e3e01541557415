"""Independent batches on the cores of a CPU: one small model gains little from a second thread."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def each_on_a_core(work: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
    """`work` of each job, in order, as many at a time as torch may use threads, each on one.

    A job must bring its own random generator; then the results do not depend on the threads.
    """
    threads = min(torch.get_num_threads(), len(jobs))
    if threads < 2:
        yield from map(work, jobs)
        return
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(work, jobs)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # the setting is of the thread, but MKL's is of the process
