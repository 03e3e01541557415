"""Canonical JSON of settings and inputs, and its digests: the same in every process."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from inspect import isfunction
from pathlib import Path
from typing import cast

from eval.errors import BadValue

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where a function lies in the memory of a process
SHORT = 16  # hex digits of a digest in a file name: 64 bits


def canonical(value: object) -> object:
    """A value as JSON that does not depend on how it was typed: 10 and 10.0 agree.

    Raises:
        BadValue: a number is not finite, or a value has no JSON form.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise BadValue(f"{value}: a record holds finite numbers only")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, list | tuple):
        return [canonical(item) for item in cast(Sequence[object], value)]
    if isinstance(value, Mapping):
        rows = cast(Mapping[object, object], value)
        return {str(key): canonical(item) for key, item in rows.items()}
    if is_dataclass(value) or callable(value):
        return as_text(value)
    if isinstance(value, Path):
        return str(value)
    raise BadValue(f"{value!r}: a {type(value).__name__} cannot be stored in a record")


def as_text(value: object) -> str:
    """A value in a line, the same in every process: a function by its module and name."""
    if isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return ADDRESS.sub("", repr(value))


def line_of(value: object) -> str:
    """JSON on one line, keys sorted."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_text(value: object) -> str:
    """Canonical JSON on one line, keys sorted."""
    return line_of(canonical(value))


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def has_digest(value: object, digest: object) -> bool:
    """Whether what was read from JSON has a digest; it is nearly always canonical as it is."""
    read = hashlib.sha256(line_of(value).encode()).hexdigest()
    return digest == read or digest == digest_of(value)
