"""Makers of small records and tables for the tests of tables."""

from dataclasses import replace

from core.pages.printed import printed_table
from core.pages.runs import newest, runs_table
from core.paper import Reported
from eval.sets.benchmarks import BENCHMARKS
from eval.tables import Block, Column, Row, Section, Table
from papers.deepseekmath_grpo import PAPER

PRINTED = PAPER.benchmarks
SUITES = ("pocket-gsm8k", "pocket-math", "pocket-mgsm-zh", "pocket-cmath")


def benchmark_table(cells, *runs):
    """The table of the first paper with other numbers, and our runs at its scale."""
    paper = replace(PAPER, reported=tuple(cells))
    return printed_table(paper, "table 5", newest(runs, paper, "paper"))


def pocket_table(runs):
    """The table of the first paper's runs at the smallest scale."""
    return runs_table(PAPER, runs, "cpu")


def printed(system, benchmark, value, block="cot", source="open", metric="top1", size="7B"):
    return Reported(
        system=system,
        size=size,
        block=block,
        source=source,
        benchmark=benchmark,
        metric=metric,
        value=value,
        passage="table 5",
        place=PRINTED.index(benchmark),
    )


def score(benchmark, value, n=None, mode="cot", metric="top1", limited=False):
    return {
        "benchmark": benchmark,
        "mode": mode,
        "metric": metric,
        "value": value,
        "low": value - 4.0,
        "high": value + 4.0,
        "n": n or BENCHMARKS[benchmark].n,
        "samples": 1,
        "limited": limited,
        "digest": f"{benchmark} {value}",
    }


def run(arm, seed, value, scale="cpu", names=SUITES, start=40.0, created=""):
    return {
        "kind": "run",
        "paper": "deepseekmath-grpo",
        "scale": scale,
        "arm": arm,
        "seed": seed,
        "start_model": "pocket-instruct",
        "size": None,
        "created": created,
        "start_scores": [score(name, start) for name in names],
        "scores": [score(name, value) for name in names],
    }


def one_cell(cell, **fields):
    table = {
        "name": "t",
        "caption": "c",
        "scale": "cpu",
        "heads": ("Model",),
        "columns": (Column("X"),),
        "blocks": (Block("b", (Section("s", (Row(("m",), (cell,)),)),)),),
        **fields,
    }
    return Table(**table)
