"""Canonical JSON of settings and inputs, and its digests; equal values give equal text."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from inspect import isfunction
from math import isfinite
from pathlib import Path
from typing import cast

from eval.errors import BadValue

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where a function lies in the memory of a process
CANONICAL = frozenset({bool, str, int, type(None)})  # types whose values stay as they are
SHORT = 16  # hex digits of a digest in a file name: 64 bits


def canonical(value: object) -> object:
    """Return a value as JSON that does not depend on how it was typed: 10.0 becomes 10.

    Tuples become lists, functions and dataclasses their text, see `as_text`.

    Raises:
        BadValue: a number is not finite, or a value has no JSON form.
    """
    if isinstance(value, bool | str | int | None):
        return value
    if isinstance(value, float):
        return canonical_number(value)
    if isinstance(value, list | tuple):
        return canonical_list(cast(Sequence[object], value))
    if isinstance(value, Mapping):
        rows = cast(Mapping[object, object], value)
        return {str(key): canonical(item) for key, item in rows.items()}
    if is_dataclass(value) or callable(value):
        return as_text(value)
    if isinstance(value, Path):
        return str(value)
    raise BadValue(f"{value!r}: a {type(value).__name__} cannot be stored in a record")


def canonical_list(values: Sequence[object]) -> list[object]:
    """Return a list of canonical values; a list of numbers alone needs no look at each type.

    Raises:
        BadValue: see `canonical`.
    """
    kinds = {*map(type, values)}
    if kinds <= CANONICAL:
        return [*values]
    if kinds == {float}:
        return [*map(canonical_number, cast(Sequence[float], values))]
    return [canonical(value) for value in values]


def canonical_number(number: float) -> float:
    """Return a finite number, as an int if it is whole and an int holds it exactly.

    Raises:
        BadValue: the number is not finite.
    """
    if not isfinite(number):
        raise BadValue(f"{number}: a record holds finite numbers only")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def as_text(value: object) -> str:
    """Return the text of a value, the same in every process: of a function its module and name."""
    if isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return ADDRESS.sub("", repr(value))


def line_of(value: object) -> str:
    """Return JSON on one line with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_text(value: object) -> str:
    """Return the canonical JSON of a value on one line with sorted keys."""
    return line_of(canonical(value))


def digest_of(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of a value, as 64 hex digits."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def has_digest(value: object, digest: object, length: int | None = None) -> bool:
    """Return whether a value that was read from JSON has this digest.

    The value is nearly always canonical already, so its text is hashed as it is first.

    Args:
        value: The value.
        digest: All hex digits of its digest, or the first `length`.
        length: How many of them; None for all.
    """
    read = hashlib.sha256(line_of(value).encode()).hexdigest()
    return digest == read[:length] or digest == digest_of(value)[:length]
