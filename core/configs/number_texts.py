"""Conversion of numbers that a config gets as text, such as 1e-6 of a YAML file."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite
from types import NoneType
from typing import get_args

from core.paper.overrides import LARGEST, describe, field_types
from eval.errors import BadValue


def convert_numbers(config: object) -> None:
    """Convert the texts of numeric fields, and those in lists of numbers, to numbers.

    Raises:
        BadValue: a text is no number of the field's type.
    """
    for name, hint in field_types(type(config)).items():
        value = getattr(config, name)
        if not isinstance(value, str | list | tuple):
            continue
        kinds = get_args(hint) or (hint,)
        place = f"{type(config).__name__}.{name}={value!r}: expected "
        if not isinstance(value, str):
            setattr(config, name, numbers_of(value, kinds, place + describe(hint)))
        elif is_numeric(kinds):
            setattr(config, name, number_of(value, kinds, place + describe(hint)))


def numbers_of(values: Sequence[object], kinds: tuple[object, ...], place: str) -> Sequence[object]:
    """Convert the texts of a list or tuple, if one of the types is a list of numbers.

    Raises:
        BadValue: a text is no such number; the message begins with `place`.
    """
    for items in map(get_args, kinds):
        if is_numeric(items) and any(isinstance(item, str) for item in values):
            numbers = [number_of(x, items, place) if isinstance(x, str) else x for x in values]
            return tuple(numbers) if isinstance(values, tuple) else numbers
    return values


def is_numeric(kinds: tuple[object, ...]) -> bool:
    """Return whether a field of these types holds numbers or None, and nothing else."""
    return {int, float, NoneType} >= {*kinds} != {NoneType} and bool(kinds)


def number_of(text: str, kinds: tuple[object, ...], place: str) -> int | float | None:
    """Convert a text to a number of one of the types, or to None.

    The text becomes an integer only if it is exactly one.

    Raises:
        BadValue: the text is no such number; the message begins with `place`.
    """
    if NoneType in kinds and text.strip().lower() in ("none", "null"):
        return None
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        exact = Decimal("nan")
    if exact.is_finite():
        if int in kinds and abs(exact) <= LARGEST and exact == int(exact):
            return int(exact)
        if float in kinds and isfinite(float(exact)):
            return float(exact)
    raise BadValue(f"{place}, got a text that is no such number")
