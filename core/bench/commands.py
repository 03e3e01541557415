"""How long a user waits: for the light commands, and for one arm and seed of a paper."""

import os
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from time import perf_counter

from core.bench.measure import Measure, median_seconds
from core.run.spread.pool import PYTHON

LIGHT = {"--help": None, "list": 0.4}  # and the most seconds that each may take
REPEATS = 5
# Runs a command and prints the memory of its largest process in kilobytes, as Linux counts: a
# process begins with what the one that started it held, which here is next to nothing.
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def bench_commands() -> list[Measure]:
    """Start-up of the commands that load no library of size."""
    return [
        Measure(
            name=f"repro {command}",
            unit="s",
            ours=median_seconds(lambda command=command: output(repro(command)), REPEATS),
            at_most=at_most,
        )
        for command, at_most in LIGHT.items()
    ]


def bench_run() -> list[Measure]:
    """One arm and one seed of DeepSeekMath in an empty folder, evaluation and report included."""
    with TemporaryDirectory() as folder:
        start = perf_counter()
        watched = [sys.executable, "-c", WATCH, *repro("run", "deepseekmath-grpo")]
        kilobytes = int(output(watched, REPRO_ROOT=folder))
        took = perf_counter() - start
    return [
        Measure(name="one arm, one seed", unit="s", ours=took),
        Measure(name="largest process", unit="GB", ours=kilobytes * 1024 / 1e9),
    ]


def repro(*arguments: str) -> list[str]:
    """A command of ours."""
    return [*PYTHON, "-m", "core.cli.main", *arguments]


def output(command: Sequence[str], **environment: str) -> bytes:
    """Run a command in a process of its own for its output; its progress stays visible."""
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    env = {**os.environ, **threads, **environment}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env).stdout
