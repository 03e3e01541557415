"""Conversion of numbers and switches that a config gets as text, such as 1e-6 of a YAML file."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite, isnan
from types import NoneType
from typing import get_args

from core.paper.overrides import LARGEST, describe, field_types
from eval.errors import BadValue

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
SWITCHES = dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
UNSET = ("none", "null")


def convert_numbers(config: object) -> None:
    """Convert the texts of numeric fields, of switches, and in lists of numbers to values.

    Raises:
        BadValue: a text is no value of the field's type, or a value is not a number where the
            field holds numbers.
    """
    for name, hint in field_types(type(config)).items():
        value = getattr(config, name)
        if isinstance(value, str | list | tuple | int | float):
            place = f"{type(config).__name__}.{name}={value!r}: expected {describe(hint)}"
            converted = convert_value(value, get_args(hint) or (hint,), place)
            if converted is not value:
                setattr(config, name, converted)


def convert_value(
    value: str | float | Sequence[object], kinds: tuple[object, ...], place: str
) -> object:
    """Convert the value of a field of these types, if it is a text, a list or a number.

    Raises:
        BadValue: the value is not of one of the types; the message begins with `place`.
    """
    if isinstance(value, str):
        if is_numeric(kinds):
            return number_of(value, kinds, place)
        return switch_of(value, kinds, place) if is_switch(kinds) else value
    if not isinstance(value, int | float):
        if is_numeric(kinds):
            raise BadValue(f"{place}, got a list")
        return numbers_of(value, kinds, place)
    if not {int, float, bool}.intersection(kinds) and any(map(is_numeric, map(get_args, kinds))):
        raise BadValue(f"{place}, got a single number")
    if isinstance(value, float) and is_numeric(kinds):
        return whole_or_real(value, kinds, place)
    return value


def whole_or_real(value: float, kinds: tuple[object, ...], place: str) -> int | float:
    """Return a number, as an integer if the field holds integers alone.

    Raises:
        BadValue: the field holds integers and the number is none; the message begins with `place`.
    """
    if float not in kinds and not value.is_integer():
        raise BadValue(f"{place}, got a fraction")
    return value if float in kinds else int(value)


def is_switch(kinds: tuple[object, ...]) -> bool:
    """Return whether a field of these types holds true, false or None, and nothing else."""
    return {bool, NoneType} >= {*kinds} != {NoneType}


def switch_of(text: str, kinds: tuple[object, ...], place: str) -> bool | None:
    """Convert a text to True, False or None.

    Raises:
        BadValue: the text is none of them; the message begins with `place`.
    """
    word = text.strip().lower()
    if NoneType in kinds and word in UNSET:
        return None
    if word not in SWITCHES:
        raise BadValue(f"{place}, got a text that is neither true nor false")
    return SWITCHES[word]


def numbers_of(values: Sequence[object], kinds: tuple[object, ...], place: str) -> Sequence[object]:
    """Convert the texts of a list or tuple, if one of the types is a list of numbers.

    Raises:
        BadValue: a text is no such number; the message begins with `place`.
    """
    for items in map(get_args, kinds):
        if is_numeric(items) and any(isinstance(item, float) and isnan(item) for item in values):
            raise BadValue(f"{place}, got NaN")
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
