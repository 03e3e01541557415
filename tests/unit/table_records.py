"""Makers of small records and tables for the tests of tables."""

from eval.sets.benchmarks import BENCHMARKS
from eval.tables import Block, Row, Section, Table
from eval.tables.deepseekmath import SUITES


def reported(cells):
    return {"kind": "reported", "paper": "deepseekmath-grpo", "title": "", "cells": cells}


def printed(system, benchmark, value, block="cot", source="open", metric="top1", size="7B"):
    return {
        "system": system,
        "size": size,
        "block": block,
        "source": source,
        "benchmark": benchmark,
        "metric": metric,
        "value": value,
        "passage": "table 5",
    }


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
    }


def run(arm, seed, value, scale="cpu", names=tuple(SUITES), start=40.0, created=""):
    return {
        "kind": "run",
        "paper": "deepseekmath-grpo",
        "scale": scale,
        "arm": arm,
        "seed": seed,
        "start_model": "pocket-instruct",
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
        "columns": ("X",),
        "blocks": (Block("b", (Section("s", (Row(("m",), (cell,)),)),)),),
        **fields,
    }
    return Table(**table)
