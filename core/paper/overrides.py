"""Typed `name=value` overrides: the value is read as the field's type, or refused with that type.

Works on any dataclass, so the fields of a family's config and of the run are checked alike.
"""

import types
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Mapping as AbstractMapping
from dataclasses import fields
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from eval.errors import BadValue, UnknownName

SPECIAL: Mapping[object, str] = {type(None): "None", Ellipsis: "..."}  # annotations
WORDS = {"true": True, "false": False, "none": None, "null": None}
Parts: TypeAlias = tuple[object, ...]  # the arguments of an annotation
T = TypeVar("T")
UNBOUNDED = (bool, str)  # types whose values all fit
LARGEST = 2**63 - 1  # integer that 64 bits hold


class UnknownField(UnknownName):
    """A setting that neither the family's config nor the run has."""

    def __init__(self, name: str, known: Iterable[str]):
        super().__init__("field", name, known)


class BadOverride(BadValue):
    """A value that does not have its field's type, or an argument that is no `name=value`."""


@cache
def field_types(config: type) -> Mapping[str, object]:
    """Return the annotation of each field that the constructor takes."""
    hints = get_type_hints(config)
    return {field.name: hints[field.name] for field in fields(config) if field.init}


def parse_override(name: str, text: str, *configs: type) -> object:
    """Read the text of a setting as the type of that field of one of the configs.

    Raises:
        UnknownField: no config has that field.
        BadOverride: the value has another type.
    """
    hint = find_type(name, *configs)
    return check_type(name, literal(text, hint), hint)


def named_texts(arguments: Iterable[str]) -> dict[str, str]:
    """Split `name=value` arguments into names and texts.

    Raises:
        BadOverride: an argument has no `=`, or a name occurs twice.
    """
    texts: dict[str, str] = {}
    for argument in arguments:
        name, equals, text = (part.strip() for part in argument.partition("="))
        if not equals or not name:
            raise BadOverride(f"{argument!r}: expected name=value, e.g. learning_rate=1e-5")
        if name in texts:
            raise BadOverride(f"{name}={texts[name]} and {name}={text}: leave one of them out")
        texts[name] = text
    return texts


def find_type(name: str, *configs: type) -> object:
    """Return the annotation of a field, from the last of the configs that has it.

    Raises:
        UnknownField: no config has the field; the nearest names are given.
    """
    for config in reversed(configs):
        if name in field_types(config):
            return field_types(config)[name]
    raise UnknownField(
        name, [field_name for config in configs for field_name in field_types(config)]
    )


def literal(text: str, hint: object) -> object:
    """Return the Python value of a text; a text that is no literal stays a string.

    The text of a `str` field is never converted. For a tuple field, words separated by commas are
    split.
    """
    if hint is str:
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return tuple(text.split(",")) if get_origin(hint) is tuple else text


def check_type(name: str, value: object, hint: object) -> object:
    """Return a value as its field's type: an int as a float, a list as a tuple if expected.

    Raises:
        BadOverride: the value has another type, or a number in it is too large or not finite.
    """
    if type(value) is hint and hint in UNBOUNDED:
        return value
    if not fits(check_size(name, value), hint):
        raise BadOverride(f"{name}={value}: expected {describe(hint)}, got {_kind(value)}")
    if isinstance(value, int) and not fits_exactly(value, hint):
        return float(value)
    if isinstance(value, list) and form_of(hint)[0] is tuple:
        return tuple(value)
    return value


def check_size(name: str, value: T) -> T:
    """Return the value if 64 bits hold every number in it.

    Raises:
        BadOverride: an integer has more bits, or a float is not finite.
    """
    if value is None or isinstance(value, str):
        return value
    for number in numbers_in(value):
        if isinstance(number, float) and not isfinite(number):
            raise BadOverride(f"{name}={value}: expected a finite number")
        if isinstance(number, int) and abs(number) > LARGEST:
            raise BadOverride(
                f"{name}: found an integer of {number.bit_length()} bits, expected at most "
                f"{LARGEST.bit_length()}"
            )
    return value


def numbers_in(value: object) -> Iterator[int | float]:
    """Yield a number, or all numbers in a collection."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, AbstractMapping):
        yield from numbers_in([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from numbers_in(item)


def fits(value: object, hint: object) -> bool:
    """Return whether a value has an annotation's type; ints are floats, bools are not ints."""
    if fits_exactly(value, hint):
        return True
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST:
        return False
    return fits_exactly(float(value), hint)


def fits_exactly(value: object, hint: object) -> bool:
    """Return whether a value has an annotation's type, without turning ints into floats."""
    origin, parts = form_of(hint)
    if hint is Any or hint is object:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(fits_exactly(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if isinstance(origin, type) and origin in COLLECTIONS:
        return COLLECTIONS[origin](value, origin, parts)
    return _fits_class(value, hint)


def _fits_elements(value: object, origin: type, parts: Parts) -> bool:
    if not isinstance(value, list | set | frozenset) or not isinstance(value, origin):
        return False
    return all(fits(element, parts[0]) for element in value)


def _fits_tuple(value: object, origin: type, parts: Parts) -> bool:
    del origin  # a list is written for a tuple
    hint = parts[0] if parts else object
    return isinstance(value, list | tuple) and all(fits(element, hint) for element in value)


def _fits_mapping(value: object, origin: type, parts: Parts) -> bool:
    del origin  # any mapping is taken for another
    pairs = value.items() if isinstance(value, AbstractMapping) else [(None, None)]
    return all(fits(key, parts[0]) and fits(element, parts[1]) for key, element in pairs)


def _fits_class(value: object, hint: object) -> bool:
    if not isinstance(hint, type):
        return callable(value)
    if issubclass(hint, Enum):
        return isinstance(value, hint) or value in [member.value for member in hint]
    is_number = hint in (int, float)
    return isinstance(value, hint) and not (is_number and isinstance(value, bool))


# By the origin of the annotation.
COLLECTIONS: Mapping[type, Callable[[object, type, Parts], bool]] = {
    list: _fits_elements,
    set: _fits_elements,
    frozenset: _fits_elements,
    tuple: _fits_tuple,
    dict: _fits_mapping,
    AbstractMapping: _fits_mapping,
}


@cache
def form_of(hint: object) -> tuple[object, Parts]:
    """Return the origin and the arguments of an annotation: `list`, `(int,)` of `list[int]`."""
    return get_origin(hint), get_args(hint)


@cache
def describe(hint: object) -> str:
    """Format an annotation as it is written: `int | None`, not `typing.Optional[int]`."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in SPECIAL:
        return SPECIAL[hint]
    if origin in (Union, types.UnionType):
        return " | ".join(describe(part) for part in parts)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(str(member.value) for member in hint)
    if origin is not None:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(describe, parts))}]"
    return getattr(hint, "__name__", str(hint))


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
