"""How long a user waits: for the light commands, and for one arm and seed of a paper."""

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
from core.stages.spread.pool import PYTHON
from eval.terminal import say

LIGHT = {"--help": None, "list": 0.4}  # and the most seconds that each may take
PAPERS, RUNS = 86, 16  # of a collection, and of each of its papers; with what is beside them 1548
LIST_S, CHECK_S = 0.4, 180.0  # the most that these may take of it
CHECKOUT_MB = 150.0  # the most that records and samples of all papers may take, of 3 seeds each
PAPER = "deepseekmath-grpo"
REPEATS = 5
# Runs a command and prints the memory of its largest process in kilobytes, as Linux counts: a
# process begins with what the one that started it held, which here is next to nothing.
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def bench_commands() -> list[Measure]:
    """Start-up of the commands that load no library of size, and commands that read all records."""
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
    """`list` and `check` of as many papers and records as are aimed at, which passed before."""
    with collection(PAPER, PAPERS, RUNS) as environment:
        output(repro("publish"), **environment)
        first = seconds(lambda: output(repro("check"), **environment))
        again = seconds(lambda: output(repro("check"), **environment))
        output(repro("list"), **environment)
        listed = median_seconds(lambda: output(repro("list"), **environment), REPEATS)
    of = f"of {PAPERS} papers, {RUNS} runs each"
    size = projected_bytes(PAPER, PAPERS, seeds=3) / 1e6
    return [
        Measure(name=f"repro list {of}", unit="s", ours=listed, at_most=LIST_S),
        Measure(name=f"repro check {of}, all new", unit="s", ours=first, at_most=CHECK_S),
        Measure(name=f"repro check {of}, unchanged", unit="s", ours=again, at_most=CHECK_S),
        Measure(
            name=f"records and samples of {PAPERS} papers, 3 seeds of every arm, projected",
            unit="MB",
            ours=size,
            at_most=CHECKOUT_MB,
        ),
    ]


def bench_run() -> list[Measure]:
    """One arm and one seed of DeepSeekMath in an empty folder, evaluation and report included."""
    with TemporaryDirectory() as folder:
        start = perf_counter()
        watched = [sys.executable, "-c", WATCH, *repro("run", PAPER)]
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
