"""Processes forked from one that has imported torch: its seconds are spent once, not once a run."""

import gc
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

SERVER = get_context("forkserver")
SERVER.set_forkserver_preload(["core.stages.record", "core.trainers.grpo"])
READ_WHEN_USED = ("REPRO_", "PYTEST_")  # prefixes of variables that no import reads
started_with: dict[str, str] = {}


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return whether a forked process is as good as one started in this environment.

    Libraries read variables when they are imported, and the server imports them once: the
    environment of the first call is the server's. A process that imported a torch for GPUs may
    have initialised a driver, which works in no fork.
    """
    import torch

    if sys.platform != "linux" or torch.version.cuda or torch.version.hip:
        return False
    read = {k: v for k, v in environment.items() if not k.startswith(READ_WHEN_USED)}
    if not started_with:
        started_with.update(read)
    return started_with == read


class Forked:
    """A forked process that runs a module; it has those methods of `subprocess.Popen` used here.

    Args:
        module: Name of the module, run as by `python -m`.
        arguments: Its command line.
        environment: All of its environment variables.
        stderr: File descriptor of its standard error; its standard output is discarded.
    """

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], stderr: int
    ):
        with Connection(os.dup(stderr), readable=False) as errors:
            self.process = SERVER.Process(
                target=run_module, args=(module, arguments, environment, os.getcwd(), errors)
            )
            with environ({**environment, "PYTHONSAFEPATH": "1"}):  # read if the server starts here
                self.process.start()

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it runs after `timeout` seconds.
        """
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.process.name), timeout or 0)
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it runs."""
        if self.process.pid is not None and self.poll() is None:
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.process.kill()


def run_module(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    errors: Connection,
) -> None:
    """Run a module in this forked process, in a session of its own."""
    gc.freeze()  # each training and evaluation ends with a full collection
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for target, source in enumerate((nowhere, nowhere, errors.fileno())):
        os.dup2(source, target)
    sys.argv[1:] = arguments
    sys.modules.pop(module, None)  # the parent's main module imports it, of which runpy would warn
    runpy.run_module(module, run_name="__main__", alter_sys=True)


@contextmanager
def environ(variables: Mapping[str, str]) -> Generator[None]:
    """Set the environment variables of this process, and all of the old ones again afterwards."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
