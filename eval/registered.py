"""Finds rows of tables: our own, those of plug-ins, and entry points of other distributions."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from eval.errors import BadValue, UnknownName, error_line
from eval.plugins import names, rows

Row = TypeVar("Row")


def find_row(kind: str, name: str, ours: Mapping[str, Row], group: str, row_type: type[Row]) -> Row:
    """Return the row with a name, from our table, a plug-in or an entry point.

    Args:
        kind: What a row is, for error messages, such as "benchmark".
        name: The name of the row.
        ours: Our own table.
        group: The entry-point group of the table.
        row_type: The class of the rows.

    Raises:
        UnknownName: no row has the name; the message lists the nearest names.
        BadValue: several rows have the name, or the entry point's object is not such a row.
    """
    our_row, plugin_rows = ours.get(name), rows(name, row_type)
    candidates: dict[str, Row | EntryPoint] = {} if our_row is None else {"ours": our_row}
    candidates |= {path: row for path, row in plugin_rows.items() if row is not our_row}
    candidates |= {p.value: p for p in group_entry_points(group) if p.name == name}
    if not candidates:
        allowed = [*ours, *names(row_type), *(point.name for point in group_entry_points(group))]
        raise UnknownName(kind, name, allowed)
    if len(candidates) > 1:
        places = ", ".join(candidates)
        raise BadValue(f"{kind} {name!r} is provided twice: {places}; leave one of them out")
    (row,) = candidates.values()
    return load_row(kind, row, row_type) if isinstance(row, EntryPoint) else row


@cache
def group_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, read once because lookups are frequent."""
    return tuple(entry_points(group=group))


def load_row(kind: str, point: EntryPoint, row_type: type[Row]) -> Row:
    """Load the row of an entry point.

    Raises:
        BadValue: the import fails, or the object is not a row of that name.
    """
    where = f"{kind} {point.name!r} ({point.value})"
    try:
        row = point.load()
    except (Exception, SystemExit) as error:  # foreign code can raise anything
        raise BadValue(f"{where}: import failed with {error_line(error)}") from error
    if not isinstance(row, row_type) or getattr(row, "name", None) != point.name:
        expected = f"{row_type.__module__}.{row_type.__name__}"
        raise BadValue(f"{where}: expected a {expected} of that name, got {row!r:.80}")
    return row
