"""The benchmarks by name; runs them and stores records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import cast

import torch

from core.bench.commands import bench_commands, bench_run
from core.bench.evaluation import bench_evaluation
from core.bench.gpu import bench_gpu, check_gpu
from core.bench.growth import bench_growth
from core.bench.large import bench_large
from core.bench.measure import Measure
from core.bench.pocket_steps import bench_steps
from core.bench.rollout import bench_rollout
from core.bench.sandbox import bench_sandbox
from core.bench.step import bench_step
from core.bench.training import bench_training
from core.records.places import check_writable, own_results
from core.records.record import machine, new_record, versions, write_record
from core.records.schema import MeasureRow
from eval.errors import BadValue, UnknownName
from eval.terminal import say

BENCHES: Mapping[str, Callable[[], list[Measure]]] = {
    "commands": bench_commands,
    "run": bench_run,
    "rollout": bench_rollout,
    "step": bench_step,
    "training": bench_training,
    "large": bench_large,
    "preference": partial(bench_steps, "preference"),
    "sft": partial(bench_steps, "sft"),
    "reward": partial(bench_steps, "reward"),
    "distillation": partial(bench_steps, "distillation"),
    "growth": bench_growth,
    "sandbox": bench_sandbox,
    "eval": bench_evaluation,
    "gpu": bench_gpu,
}
PEERS = ("trl", "lm-eval")


def bench(names: Sequence[str]) -> list[MeasureRow]:
    """Run the named benchmarks, or all that can run here, and record each as it finishes.

    Raises:
        UnknownName: there is no such benchmark.
        BadValue: a named benchmark lacks its GPU or its peer, or records cannot be written.
    """
    for name in names:
        if name not in BENCHES:
            raise UnknownName("benchmark", name, BENCHES)
    check_writable(own_results() / "bench")
    return [row for name in names or runnable() for row in run_and_record(name)]


def run_and_record(name: str) -> list[MeasureRow]:
    """Run a benchmark, store its record, and return its measures as rows."""
    rows = [measure_row(name, measure) for measure in run_benchmark(name)]
    cards = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    content = {
        "paper": "bench",
        "scale": "gpu" if name == "gpu" else "cpu",
        "machine": ", ".join([machine(), *cards]),
        "measures": rows,
    }
    write_record(new_record("bench", versions=versions(*PEERS), **content))
    return rows


def measure_row(bench: str, measure: Measure) -> MeasureRow:
    """Return a measure of a benchmark as it is recorded."""
    row = {"bench": bench, **asdict(measure), "ratio": measure.ratio, "met": measure.met}
    return cast(MeasureRow, row)


def runnable() -> list[str]:
    """Return the benchmarks that can run here; a missing GPU is reported."""
    try:
        check_gpu()
    except BadValue as error:
        say(f"not measured: {error}")
        return [name for name in BENCHES if name != "gpu"]
    return list(BENCHES)


def run_benchmark(name: str) -> list[Measure]:
    """Run a benchmark and restore the number of torch threads."""
    threads = torch.get_num_threads()
    try:
        return BENCHES[name]()
    finally:
        torch.set_num_threads(threads)
