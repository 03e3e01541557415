"""Checks JSON values against the types of their fields."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from types import UnionType
from typing import Any, cast, get_type_hints, is_typeddict

from core.paper.overrides import describe, fits, form_of
from core.records.verdict_row import LATER_FIELDS, VerdictRow

# By the type of a field, the types of its values.
SCALARS: Mapping[object, frozenset[type]] = {
    float: frozenset({float, int}),
    int: frozenset({int}),
    str: frozenset({str}),
}


def mistakes(value: object, hint: object, name: str = "") -> Iterator[str]:
    """Yield a line for each field of a JSON value that is missing or of another type."""
    origin, parts = form_of(hint)
    if is_typeddict(hint) and isinstance(value, dict):
        yield from row_mistakes(cast(dict[str, object], value), hint, name)
    elif origin is UnionType and any(map(is_typeddict, parts)):  # a row, or None
        if value is not None:
            yield from mistakes(value, next(filter(is_typeddict, parts)), name)
    elif origin is list and isinstance(value, list):
        items = cast(list[object], value)
        names = (f"{name}[{position}]" for position in range(len(items)))
        yield from item_mistakes(items, parts[0], names)
    elif origin is dict and isinstance(value, dict):
        fields = cast(dict[str, object], value)
        yield from item_mistakes([*fields.values()], parts[1], (name_of(name, k) for k in fields))
    elif is_typeddict(hint) or not fits(value, hint):
        yield f"{name} is a {type(value).__name__}, expected {describe(hint)}"


def row_mistakes(row: dict[str, object], hint: object, name: str) -> Iterator[str]:
    """Yield the mistakes of a row: its missing fields, then those of its fields."""
    if lacking := required_of(hint) - row.keys():
        yield from (f"no field {name_of(name, key)!r}" for key in sorted(lacking))
    for key, part in fields_of(hint).items():
        found: object = type(row[key]) if key in row else part
        if found is not part:  # nearly all fields are of their type
            yield from mistakes(row[key], part, name_of(name, key))


def item_mistakes(items: list[object], part: object, names: Iterable[str]) -> Iterator[str]:
    """Yield the mistakes of items of one type, each with its name."""
    if only_scalars(items, part):
        return
    for item, item_name in zip(items, names, strict=True):
        yield from mistakes(item, part, item_name)


def only_scalars(items: list[object], part: object) -> bool:
    """Return whether a list holds only numbers or texts of a type, in lists or not."""
    origin, inner = form_of(part)
    if origin is list and {*map(type, items)} <= {list}:
        part, items = inner[0], list(chain.from_iterable(cast(list[list[object]], items)))
    return part in SCALARS and {*map(type, items)} <= SCALARS[part]


@cache
def required_of(hint: object) -> frozenset[str]:
    """Return the fields that each row of a TypedDict has."""
    required: frozenset[str] = vars(hint)["__required_keys__"]
    return required - LATER_FIELDS if hint is VerdictRow else required


@cache
def fields_of(hint: type) -> Mapping[str, object]:
    """Return the fields of a TypedDict with their types, without those of any type."""
    return {name: of for name, of in get_type_hints(hint).items() if of is not Any}


def name_of(parent: str, key: str) -> str:
    """Return the path of a field from the record, such as `train.held_out`."""
    return f"{parent}.{key}" if parent else key
