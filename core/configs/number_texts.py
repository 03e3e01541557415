"""Numbers that are given to a config as text, such as 1e-6 of a YAML file, become numbers."""

from decimal import Decimal, InvalidOperation
from math import isfinite
from types import NoneType
from typing import Any, get_args

from core.paper.overrides import LARGEST, describe, field_types
from eval.errors import BadValue


def take_numbers(config: Any) -> None:  # Any: a dataclass of settings
    """Turn the texts of numeric fields, and those in lists of numbers, into numbers.

    Raises:
        BadValue: a text is no number that the field can have.
    """
    for name, hint in field_types(type(config)).items():
        value, kinds = getattr(config, name), get_args(hint) or (hint,)
        place = f"{type(config).__name__}.{name}={value!r}: expected {describe(hint)}"
        if isinstance(value, str) and is_numeric(kinds):
            setattr(config, name, number_of(value, kinds, place))
        for items in map(get_args, kinds if isinstance(value, list | tuple) else ()):
            if is_numeric(items) and any(isinstance(item, str) for item in value):
                numbers = [number_of(x, items, place) if isinstance(x, str) else x for x in value]
                setattr(config, name, type(value)(numbers))


def is_numeric(kinds: tuple[Any, ...]) -> bool:  # Any: annotations
    """Return whether a field of these kinds holds numbers or None, and nothing else."""
    return {int, float, NoneType} >= {*kinds} != {NoneType} and bool(kinds)


def number_of(text: str, kinds: tuple[Any, ...], place: str) -> int | float | None:
    """Read a text as one of the kinds, an integer only where it is exactly one.

    Raises:
        BadValue: it is none; the message begins with `place`.
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
