"""The benchmarks by name, and their record with its chart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from core.bench.commands import bench_commands, bench_run
from core.bench.evaluation import bench_evaluation
from core.bench.gpu import bench_gpu, check_gpu
from core.bench.growth import bench_growth
from core.bench.large import bench_large
from core.bench.measure import Measure
from core.bench.rollout import bench_rollout
from core.bench.sandbox import bench_sandbox
from core.bench.step import bench_step
from core.bench.training import bench_training
from core.pages.speed_chart import chart
from core.records.files import write_atomic
from core.records.places import check_writable, own_results
from core.records.record import machine, new_record, versions, write_record
from eval.errors import BadValue, UnknownName
from eval.terminal import say

BENCHES: Mapping[str, Callable[[], list[Measure]]] = {
    "commands": bench_commands,
    "run": bench_run,
    "rollout": bench_rollout,
    "step": bench_step,
    "training": bench_training,
    "large": bench_large,
    "growth": bench_growth,
    "sandbox": bench_sandbox,
    "eval": bench_evaluation,
    "gpu": bench_gpu,
}
PEERS = ("trl", "lm-eval")


def bench(names: Sequence[str]) -> list[dict[str, Any]]:  # Any: a measure's fields
    """Measure what is named, or all that can run here; each is recorded when it is done.

    Raises:
        UnknownName: there is no such benchmark.
        BadValue: what is named needs a GPU or a peer that is not here, or records cannot be kept.
    """
    for name in names:
        if name not in BENCHES:
            raise UnknownName("benchmark", name, BENCHES)
    check_writable(own_results() / "bench")
    return [row for name in names or runnable() for row in recorded(name)]


def recorded(name: str) -> list[dict[str, Any]]:
    """What a benchmark finds, kept as a record with a chart beside it."""
    rows = [
        {"bench": name, **asdict(found), "ratio": found.ratio, "met": found.met}
        for found in measured(name)
    ]
    cards = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    content = {
        "paper": "bench",
        "scale": "gpu" if name == "gpu" else "cpu",
        "machine": ", ".join([machine(), *cards]),
        "measures": rows,
    }
    record = write_record(new_record("bench", versions=versions(*PEERS), **content))
    write_atomic(own_results() / "bench" / f"{record['digest']}.svg", chart(rows))
    return rows


def runnable() -> list[str]:
    """The benchmarks that can run here; one that needs a GPU says so where there is none."""
    try:
        check_gpu()
    except BadValue as error:
        say(f"not measured: {error}")
        return [name for name in BENCHES if name != "gpu"]
    return list(BENCHES)


def measured(name: str) -> list[Measure]:
    """What a benchmark finds; the next one has the threads that this one had."""
    threads = torch.get_num_threads()
    try:
        return BENCHES[name]()
    finally:
        torch.set_num_threads(threads)
