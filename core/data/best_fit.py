"""Several documents in one row of tokens: best-fit decreasing, or cut wherever a row is full."""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from eval.errors import BadValue, UnknownName

Columns: TypeAlias = Mapping[str, list[list[int]]]
COLUMNS = ("input_ids", "labels")
LENGTHS = "seq_lengths"  # of the documents in a row


def pack_rows(rows: Any, width: int | None, strategy: str, **processes: Any) -> Any:
    """Rows of up to `width` tokens from a dataset of `input_ids` and `labels`.

    1,000 documents at a time share their rows, in TRL's order; best fit is arXiv 2404.10830. The
    dataset is whole or streamed, and maps by `processes`.

    Raises:
        BadValue: the width is not set.
        UnknownName: there is no such strategy.
    """
    if width is None:
        raise BadValue("packing needs max_length, the width of a row: found None")
    if strategy not in STRATEGIES:
        raise UnknownName("packing strategy", strategy, STRATEGIES)
    share, names = partial(STRATEGIES[strategy], width=width), list(COLUMNS)
    return rows.select_columns(names).map(share, batched=True, remove_columns=names, **processes)


def truncated(columns: Columns, width: int) -> Columns:
    """Documents cut to `width`, several to a row."""
    return in_rows({name: [ids[:width] for ids in columns[name]] for name in COLUMNS}, width)


def split(columns: Columns, width: int) -> Columns:
    """Documents cut into pieces of up to `width`, several to a row."""
    pieces = {
        name: [ids[at : at + width] for ids in columns[name] for at in range(0, len(ids), width)]
        for name in COLUMNS
    }
    return in_rows(pieces, width)


def wrapped(columns: Columns, width: int) -> Columns:
    """All tokens one after the other, cut into rows of `width` that know no documents."""
    joined = {name: list(chain.from_iterable(columns[name])) for name in COLUMNS}
    return {
        name: [ids[at : at + width] for at in range(0, len(ids), width)]
        for name, ids in joined.items()
    }


def in_rows(columns: Columns, width: int) -> Columns:
    """Documents side by side as `best_fit` places them, with their lengths; empty ones left out."""
    documents = [at for at, ids in enumerate(columns["input_ids"]) if ids]
    lengths = [len(columns["input_ids"][at]) for at in documents]
    rows = best_fit(lengths, width)
    return {
        LENGTHS: [[lengths[at] for at in row] for row in rows],
        **{
            name: [
                list(chain.from_iterable(columns[name][documents[at]] for at in row))
                for row in rows
            ]
            for name in COLUMNS
        },
    }


def best_fit(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Which documents share a row: the longest choose first, each the row it fills most.

    Of rows that are equally full the one that became so first is taken.
    """
    rows: list[list[int]] = []
    free: list[tuple[int, int, int]] = []  # room, since when, and which row
    for time, at in enumerate(sorted(range(len(lengths)), key=lambda at: -lengths[at])):
        place = bisect_left(free, (lengths[at],))
        if place == len(free):
            rows.append([])
        room, _, row = free.pop(place) if place < len(free) else (width, time, len(rows) - 1)
        rows[row].append(at)
        if room > lengths[at]:
            insort(free, (room - lengths[at], time, row))
    return rows


STRATEGIES: Mapping[str, Callable[..., Columns]] = {
    "bfd": truncated,
    "bfd_split": split,
    "wrapped": wrapped,
}
