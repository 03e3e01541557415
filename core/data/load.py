"""Training data by name, as datasets."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path

from datasets import Dataset, concatenate_datasets

from core.data.sets import DataSet, find_sets
from core.data.sources import STYLES, Row
from eval.errors import DamagedFile
from eval.pocket.solver import fallible
from eval.pocket.suites import drafts
from eval.sets.benchmarks import Benchmark, find_benchmark


def load_training_data(name: str, split: str = "train", data: Path | None = None) -> Dataset:
    """The rows of a data set, or of several joined with `+`, with the columns that each states.

    Raises:
        UnknownName: there is none of that name.
        MissingFile, DamagedFile: its rows cannot be had, or are not what it states.
    """
    return load_sets(find_sets(name), split, data)


def load_sets(sets: Sequence[DataSet], split: str = "train", data: Path | None = None) -> Dataset:
    """The same of data sets that are at hand."""
    return joined(rows(one, split, data) for one in sets)


def joined(parts: Iterable[list[Row]]) -> Dataset:
    """The rows of all parts, each with the columns of all."""
    return concatenate_datasets([Dataset.from_list(part) for part in parts])


def rows(one: DataSet, split: str, data: Path | None) -> list[Row]:
    """The rows of one data set.

    Raises:
        DamagedFile: there are none, or the first lacks a column.
    """
    found = one.source.rows(one.name, split, data)
    if not found:
        raise DamagedFile(f"{one.name}: there are no rows")
    missing = [column for column in one.columns or () if column not in found[0]]
    if missing:
        there = ", ".join(found[0])
        raise DamagedFile(f"{one.name}: no column {', '.join(missing)}; there are {there}")
    return found


def demonstrations(suites: Sequence[str], styles: Sequence[str], build: int = 0) -> Dataset:
    """Prompt and completion of each training problem; the styles take turns.

    "worked" answers step by step, "program" by a program, and "fallible" step by step with the
    mistakes of a build.
    """
    tell = {**STYLES, "fallible": lambda made: fallible(made, build).text}
    found = []
    for suite in suites:
        benchmark: Benchmark = find_benchmark(suite)
        problems = benchmark.load(split="train")
        pairs = zip(problems, drafts(suite, "train"), strict=True)
        for style, (problem, made) in zip(cycle(styles), pairs, strict=False):
            prompt = benchmark.prompt(problem, "tir" if style == "program" else "cot")
            found.append(
                {
                    "prompt": [{"role": "user", "content": prompt}],
                    "completion": [{"role": "assistant", "content": tell[style](made)}],
                }
            )
    return Dataset.from_list(found)
