"""Checks that datasets have what a trainer reads of each row."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.data.streams import columns_of, is_stream
from eval.errors import BadValue

Datasets = Mapping[str, Any]  # Any: datasets and dictionaries of them, which are checked later


def check_column(
    datasets: Datasets, column: str, *, missing: str, advice: str, empty: Sequence[object] = (None,)
) -> None:
    """Refuse data without a column, or with an empty value in it, by its name and the row.

    Args:
        datasets: Datasets, and dictionaries of them, by the argument that they are given as.
        column: The column.
        missing: The end of the error for data without the column, after its columns.
        advice: The end of the error for a row with an empty value.
        empty: The values that count as empty.

    Raises:
        BadValue: there is no such column, or a row has an empty value.
    """
    for name, dataset in each_dataset(datasets):
        columns = columns_of(dataset)
        if column not in columns:
            raise BadValue(f"{name} has the columns {', '.join(columns)}{missing}")
        rows = () if is_stream(dataset) else dataset[column]
        place = next((i for i, value in enumerate(rows) if value in empty), None)
        if place is not None:
            raise BadValue(f"row {place} of {name} has no {column}: {advice}")


def each_dataset(datasets: Datasets) -> Iterator[tuple[str, Any]]:  # Any: as above
    """Yield the datasets that are given, each by its name, those of a dictionary too."""
    for name, dataset in datasets.items():
        if isinstance(dataset, dict):
            yield from each_dataset({f"{name}[{key!r}]": rows for key, rows in dataset.items()})
        elif dataset is not None:
            yield name, dataset
