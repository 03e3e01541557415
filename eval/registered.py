"""Rows of a table: ours, those of plug-ins, and what other distributions add by entry points."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from eval.errors import BadValue, UnknownName, error_line
from eval.plugins import names, rows

Row = TypeVar("Row")


def find_row(kind: str, name: str, ours: Mapping[str, Row], group: str, made: type[Row]) -> Row:
    """The row of that name: of our table, of a plug-in, or an entry point's object of that name.

    Raises:
        UnknownName: there is none; the nearest names are given.
        BadValue: there are two, or the object is no such row.
    """
    points = {point.value: point for point in registered(group) if point.name == name}
    held = {place: row for place, row in rows(name, made).items() if row is not ours.get(name)}
    if len(points) + len(held) + (name in ours) > 1:
        places = ", ".join([*(["ours"] if name in ours else []), *held, *points])
        raise BadValue(f"{kind} {name!r} is provided twice: {places}; leave one of them out")
    if name in ours:
        return ours[name]
    if held:
        return next(iter(held.values()))
    if not points:
        known = [*ours, *names(made), *(point.name for point in registered(group))]
        raise UnknownName(kind, name, known)
    (point,) = points.values()
    return loaded(kind, point, made)


@cache
def registered(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, looked for once: a table is asked for every row of a record."""
    return tuple(entry_points(group=group))


def loaded(kind: str, point: EntryPoint, made: type[Row]) -> Row:
    """The row of an entry point.

    Raises:
        BadValue: it cannot be imported, or is no row of that name.
    """
    where = f"{kind} {point.name!r} ({point.value})"
    try:
        row = point.load()
    except (Exception, SystemExit) as error:  # anybody's module: what it raises is named
        raise BadValue(f"{where}: import failed with {error_line(error)}") from error
    if not isinstance(row, made) or getattr(row, "name", None) != point.name:
        expected = f"{made.__module__}.{made.__name__}"
        raise BadValue(f"{where}: expected a {expected} of that name, got {row!r:.80}")
    return row
