"""Training data by name, as datasets."""

import json
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow
from datasets import Dataset

from core.data.sets import DataSet, find_sets
from core.data.sources import STYLES, Row, column_names
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


def joined(parts: Iterable[list[Row]], reads: Sequence[str] = ()) -> Dataset:
    """Return the rows of all parts, each with the columns of all; see `column_values`.

    Raises:
        DamagedFile: a column that is read holds lists or objects beside values of another type, or
            a text is no Unicode.
    """
    rows = [row for part in parts for row in part]
    columns = {name: [row.get(name) for row in rows] for name in column_names(rows)}
    for name in set(reads).intersection(columns):
        kinds = {type(value).__name__ for value in columns[name] if value is not None}
        if len(kinds) > 1 and kinds & {"list", "dict"}:
            raise DamagedFile(
                f"column {name}: its rows hold {' and '.join(sorted(kinds))}: expected one type"
            )
    return Dataset.from_dict({name: column_values(name, each) for name, each in columns.items()})


def column_values(name: str, values: list[Any]) -> list[Any]:  # Any: of any type, as Arrow takes it
    """Return the values of a column as values of one type.

    Numbers and truth values beside texts become texts, and values that Arrow cannot hold in one
    column, such as lists beside texts, become their JSON; None stays None.

    Raises:
        DamagedFile: a text is no Unicode.
    """
    try:
        pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return [as_json(value) for value in values]
    except UnicodeEncodeError as error:
        raise DamagedFile(f"column {name}: a text holds half a surrogate pair ({error})") from None
    return values


def as_json(value: Any) -> str | None:  # Any: as above
    """Return a text as it is and any other value as JSON."""
    return (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def rows(one: DataSet, split: str, data: Path | None) -> list[Row]:
    """Return the rows of one data set.

    Raises:
        DamagedFile: there are none, or no row has a column.
    """
    found = one.source.rows(one.name, split, data)
    if not found:
        raise DamagedFile(f"{one.name}: there are no rows")
    there = column_names(found)
    missing = [column for column in one.columns or () if column not in there]
    if missing:
        raise DamagedFile(
            f"{one.name}: no column {', '.join(missing)}; there are {', '.join(there)}"
        )
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
