"""Packing of several documents into one row of tokens: by best fit, next fit or cutting."""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from eval.errors import BadValue, UnknownName

Data: TypeAlias = Any  # Any: a Dataset or an IterableDataset, which share methods but no class
Columns: TypeAlias = Mapping[str, list[list[int]]]
Fit: TypeAlias = Callable[[Sequence[int], int], list[list[int]]]  # lengths and width to rows
COLUMNS = ("input_ids", "labels")
LENGTHS = "seq_lengths"  # of the documents in a row


def pack_rows(rows: Data, width: int | None, strategy: str, **processes: object) -> Data:
    """Pack a dataset of `input_ids` and `labels` into rows of up to `width` tokens.

    Batches of 1,000 documents are packed together, in TRL's order; best fit is arXiv 2404.10830,
    next fit is that of T5, arXiv 1910.10683.

    Args:
        rows: a Dataset or IterableDataset.
        width: largest number of tokens in a row.
        strategy: a key of `STRATEGIES`.
        processes: further keyword arguments of the dataset's `map`.

    Raises:
        BadValue: the width is None.
        UnknownName: the strategy does not exist.
    """
    if width is None:
        raise BadValue("packing needs max_length, the width of a row: found None")
    if strategy not in STRATEGIES:
        raise UnknownName("packing strategy", strategy, STRATEGIES)
    share, names = partial(STRATEGIES[strategy], width=width), list(COLUMNS)
    return rows.select_columns(names).map(share, batched=True, remove_columns=names, **processes)


def pack_truncated(columns: Columns, width: int) -> Columns:
    """Truncate documents to `width` tokens and pack them by best fit."""
    return pack_documents(truncated(columns, width), width, best_fit)


def pack_next_fit(columns: Columns, width: int) -> Columns:
    """Truncate documents to `width` tokens and pack them by next fit, in their order."""
    return pack_documents(truncated(columns, width), width, next_fit)


def truncated(columns: Columns, width: int) -> Columns:
    """Return the first `width` tokens of each document."""
    return {name: [ids[:width] for ids in columns[name]] for name in COLUMNS}


def pack_split(columns: Columns, width: int) -> Columns:
    """Split documents into pieces of up to `width` tokens and pack them by best fit."""
    pieces = {
        name: [
            ids[start : start + width]
            for ids in columns[name]
            for start in range(0, len(ids), width)
        ]
        for name in COLUMNS
    }
    return pack_documents(pieces, width, best_fit)


def pack_wrapped(columns: Columns, width: int) -> Columns:
    """Concatenate all tokens and cut them into rows of `width`, ignoring document boundaries."""
    concatenated = {name: list(chain.from_iterable(columns[name])) for name in COLUMNS}
    return {
        name: [ids[start : start + width] for start in range(0, len(ids), width)]
        for name, ids in concatenated.items()
    }


def pack_documents(columns: Columns, width: int, fit: Fit) -> Columns:
    """Pack documents by a rule and add their lengths; empty documents are left out."""
    documents = [index for index, ids in enumerate(columns["input_ids"]) if ids]
    lengths = [len(columns["input_ids"][index]) for index in documents]
    rows = fit(lengths, width)
    return {
        LENGTHS: [[lengths[index] for index in row] for row in rows],
        **{
            name: [
                list(chain.from_iterable(columns[name][documents[index]] for index in row))
                for row in rows
            ]
            for name in COLUMNS
        },
    }


def best_fit(lengths: Sequence[int], width: int, *, decreasing: bool = True) -> list[list[int]]:
    """Assign documents to rows of `width`, each to the fullest row it fits in.

    The longest documents come first, or they keep their order if `decreasing` is False. Of equally
    full rows, the one that reached its fill first is taken. Returns document indices by row.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index] if decreasing else 0)
    rows: list[list[int]] = []
    free: list[tuple[int, int, int]] = []  # room, since when, and which row
    for time, index in enumerate(order):
        position = bisect_left(free, (lengths[index],))
        if position == len(free):
            rows.append([])
        free_width, _, row = (
            free.pop(position) if position < len(free) else (width, time, len(rows) - 1)
        )
        rows[row].append(index)
        if free_width > lengths[index]:
            insort(free, (free_width - lengths[index], time, row))
    return rows


def next_fit(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Assign documents to rows of `width` in order, each to the last row or to a new one.

    Only one row is open at a time, as in T5's preprocessing. Returns document indices by row.
    """
    rows: list[list[int]] = []
    free = 0
    for index, length in enumerate(lengths):
        if length > free:
            rows.append([])
            free = width
        rows[-1].append(index)
        free -= length
    return rows


STRATEGIES: Mapping[str, Callable[..., Columns]] = {
    "bfd": pack_truncated,
    "bfd_split": pack_split,
    "wrapped": pack_wrapped,
    "next_fit": pack_next_fit,
}
