"""Measures how long commands take: light ones, those over all records, and a whole run."""

import os
import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from time import perf_counter

from core.bench.checkout import projected_bytes
from core.bench.collection import collection
from core.bench.measure import Measure, median_seconds, seconds
from core.records.places import no_runs, record_files
from core.spread.pool import PYTHON
from eval.terminal import say

LIGHT = {"--help": None, "list": 0.4}  # allowed seconds of each command
PAPERS, RUNS = 86, 16  # papers of the collection, and runs of each paper: 1548 records in all
LIST_S, CHECK_S = 0.4, 180.0  # allowed seconds of `list` and `check` on the collection
CHECKOUT_MB = 150.0  # allowed size of the records and samples of all papers with 3 seeds each
PAPER = "deepseekmath-grpo"
REPEATS = 5
# Runs a command and prints the peak memory of its largest process in kilobytes. Linux starts this
# count at the memory of the parent process, which is small here.
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def bench_commands() -> list[Measure]:
    """Measure the start-up of light commands, and the commands that read all records."""
    light = [
        Measure(
            name=f"repro {command}",
            unit="s",
            ours=median_seconds(lambda command=command: output(repro(command)), REPEATS),
            at_most=at_most,
        )
        for command, at_most in LIGHT.items()
    ]
    if not record_files(PAPER):
        say(f"not measured: commands that read all records; {no_runs(PAPER)}")
        return light
    return [*light, *bench_collection()]


def bench_collection() -> list[Measure]:
    """Measure `list` and `check` on a collection of the target size, and its projected size."""
    with collection(PAPER, PAPERS, RUNS) as environment:
        output(repro("publish"), **environment)
        first = seconds(lambda: output(repro("check"), **environment))
        again = seconds(lambda: output(repro("check"), **environment))
        output(repro("list"), **environment)
        listed = median_seconds(lambda: output(repro("list"), **environment), REPEATS)
    suffix = f"of {PAPERS} papers, {RUNS} runs each"
    size = projected_bytes(PAPER, PAPERS, seeds=3) / 1e6
    return [
        Measure(name=f"repro list {suffix}", unit="s", ours=listed, at_most=LIST_S),
        Measure(name=f"repro check {suffix}, all new", unit="s", ours=first, at_most=CHECK_S),
        Measure(name=f"repro check {suffix}, unchanged", unit="s", ours=again, at_most=CHECK_S),
        Measure(
            name=f"records and samples of {PAPERS} papers, 3 seeds of every arm, projected",
            unit="MB",
            ours=size,
            at_most=CHECKOUT_MB,
        ),
    ]


def bench_run() -> list[Measure]:
    """Measure one arm and seed of DeepSeekMath in an empty folder, with evaluation and report."""
    with TemporaryDirectory() as folder:
        start = perf_counter()
        command = [sys.executable, "-c", WATCH, *repro("run", PAPER)]
        kilobytes = int(output(command, REPRO_ROOT=folder))
        elapsed_s = perf_counter() - start
    return [
        Measure(name="one arm, one seed", unit="s", ours=elapsed_s),
        Measure(name="largest process", unit="GB", ours=kilobytes * 1024 / 1e9),
    ]


def repro(*arguments: str) -> list[str]:
    """Return the command line of a `repro` command."""
    return [*PYTHON, "-m", "core.cli.main", *arguments]


def output(command: Sequence[str], **environment: str) -> bytes:
    """Run a command in its own process and return its standard output; progress stays visible."""
    threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    env = {**os.environ, **threads, **environment}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env).stdout
