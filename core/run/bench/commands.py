"""How long a user waits: for the light commands, and for one arm and seed of a paper."""

import os
import resource
import subprocess
import sys
from tempfile import TemporaryDirectory

from core.run.bench.measure import Measure, median_seconds, seconds

LIGHT = {"--help": None, "list": 0.4}  # and the most seconds that each may take
REPEATS = 5


def bench_commands() -> list[Measure]:
    """Start-up of the commands that load no library of size."""
    return [
        Measure(
            name=f"repro {command}",
            unit="s",
            ours=median_seconds(lambda command=command: repro(command), REPEATS),
            at_most=at_most,
        )
        for command, at_most in LIGHT.items()
    ]


def bench_run() -> list[Measure]:
    """One arm and one seed of DeepSeekMath in an empty folder, evaluation and report included."""
    with TemporaryDirectory() as folder:
        took = seconds(lambda: repro("run", "deepseekmath-grpo", REPRO_ROOT=folder))
    # Linux gives kilobytes: the largest process that was waited for.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return [
        Measure(name="one arm, one seed", unit="s", ours=took),
        Measure(name="largest process", unit="GB", ours=peak / 1e9),
    ]


def repro(*arguments: str, **environment: str) -> None:
    """Run a command of ours in a process of its own; its progress stays visible."""
    command = [sys.executable, "-m", "core.cli.main", *arguments]
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **threads, **environment}
    )
