"""Jobs in copies of the process: what they give, and that none outlives what it was made for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import torch

from core.core_pool import FORKS, map_on_cores

pytestmark = pytest.mark.skipif(not FORKS, reason="NOT TESTED: processes are copied on Linux only")
ENDLESS = """
import os, time, torch
from core.core_pool import map_on_cores
torch.set_num_threads(2)
def work(job):
    os.write(1, b"%d\\n" % os.getpid())  # one write: the copies share the pipe
    time.sleep(600)
list(map_on_cores(work, [1, 2], 2))
"""


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_from_processes_of_one_thread():
    found = list(map_on_cores(lambda job: (job, os.getpid(), torch.get_num_threads()), range(9), 2))
    assert [job for job, *_ in found] == list(range(9))
    assert os.getpid() not in {pid for _, pid, _ in found}
    assert {threads for *_, threads in found} == {1}
    assert torch.get_num_threads() == 2


def test_one_process_or_one_job_is_this_one():
    for jobs, processes in ((3, 1), (1, 2)):
        assert set(map_on_cores(lambda _: os.getpid(), range(jobs), processes)) == {os.getpid()}


def test_an_error_of_a_job_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(map_on_cores(lambda job: 1 / job, [1, 0], 2))


def test_a_killed_process_is_an_error_and_not_waited_for():
    with pytest.raises(BrokenProcessPool):
        list(map_on_cores(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2], 2))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_copies_end_with_the_original(number: signal.Signals):
    command = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        copies = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(number)
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in copies) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in copies if alive(pid)] == []


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
