"""Training data by name, as `datasets.Dataset`."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow
from datasets import Dataset

from core.data.data_set import DataSet
from core.data.sets import find_sets
from core.data.sources import Row, column_names
from eval.errors import DamagedFile


def load_training_data(name: str, split: str = "train", data: Path | None = None) -> Dataset:
    """Load a data set, or several joined with `+`, with the columns that each declares.

    Raises:
        UnknownName: no data set has this name.
        MissingFile, DamagedFile: the rows are missing, or are not as declared.
    """
    return load_sets(find_sets(name), split, data)


def load_sets(sets: Sequence[DataSet], split: str = "train", data: Path | None = None) -> Dataset:
    """Load these data sets as one; see `load_training_data`."""
    return join_parts(rows(data_set, split, data) for data_set in sets)


def join_parts(parts: Iterable[list[Row]], reads: Sequence[str] = ()) -> Dataset:
    """Concatenate the rows of all parts; every row gets the columns of all. See `column_values`.

    Args:
        parts: rows of each part.
        reads: columns whose values must have one type.

    Raises:
        DamagedFile: a column in `reads` holds lists or objects beside values of another type,
            or a text is no valid Unicode.
    """
    rows = [row for part in parts for row in part]
    columns = {name: [row.get(name) for row in rows] for name in column_names(rows)}
    for name in set(reads).intersection(columns):
        check_one_type(name, columns[name])
    return Dataset.from_dict(
        {name: column_values(name, values) for name, values in columns.items()}
    )


def check_one_type(name: str, values: Sequence[object]) -> None:
    """Raise if lists or objects stand beside values of another type in a column.

    Raises:
        DamagedFile: they do.
    """
    kinds = {type(value).__name__ for value in values if value is not None}
    if len(kinds) > 1 and kinds & {"list", "dict"}:
        raise DamagedFile(
            f"column {name}: its rows hold {' and '.join(sorted(kinds))}: expected one type"
        )


def column_values(name: str, values: Sequence[object]) -> Sequence[object]:
    """Convert the values of a column to one type that Arrow can hold.

    Numbers and booleans beside texts become texts. Values of several other types, such as lists
    beside texts, become JSON texts. None stays None.

    Raises:
        DamagedFile: a text is no valid Unicode.
    """
    try:
        pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return [as_json(value) for value in values]
    except UnicodeEncodeError as error:
        raise DamagedFile(f"column {name}: a text holds half a surrogate pair ({error})") from None
    return values


def as_json(value: object) -> str | None:
    """Return a value as JSON text; texts and None are returned unchanged."""
    return (
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def rows(data_set: DataSet, split: str, data: Path | None) -> list[Row]:
    """Return the rows of one data set.

    Raises:
        DamagedFile: there are no rows, or a declared column is missing.
    """
    data_rows = data_set.source.rows(data_set.name, split, data)
    if not data_rows:
        raise DamagedFile(f"{data_set.name}: there are no rows")
    present = column_names(data_rows)
    missing = [column for column in data_set.columns or () if column not in present]
    if missing:
        raise DamagedFile(
            f"{data_set.name}: no column {', '.join(missing)}; there are {', '.join(present)}"
        )
    return data_rows
