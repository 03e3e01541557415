"""The keys of rewards: where a reward is defined, its source text and its state."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from inspect import getsource, isfunction
from types import CodeType, FunctionType
from typing import Any, cast

from core.settings.canonical import SHORT, as_text, canonical, digest_of
from eval.errors import BadValue


def reward_key(reward: object) -> object:
    """Return the JSON that represents a reward in the key of a training.

    A function is represented by its module, name, source text, defaults, attributes and closure
    variables; a frozen dataclass by its class, the classes that it extends and its fields; a
    `functools.partial` by what it fixes. Functions that a reward calls and globals that it reads
    are not included: after a change there, run with --force.

    Raises:
        BadValue: the reward is none of these, or holds a value that has no key.
    """
    try:
        return state_of(reward)
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise BadValue(
            f"reward {as_text(reward)}: {error}, so its training has no key: make it a function "
            "(def) of a module, or a frozen dataclass of plain values"
        ) from error


def state_of(value: object) -> object:
    """Return the JSON of a plain value, a function, a frozen dataclass or a partial.

    Raises:
        OSError, TypeError, ValueError, RecursionError: the value has no such form.
    """
    if callable(value) or is_dataclass(value):
        return state_of_code(value)
    if isinstance(value, Mapping):
        rows = cast(Mapping[object, object], value)
        return {str(name): state_of(item) for name, item in rows.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [state_of(item) for item in cast(Sequence[object], value)]
    return canonical(value)


def state_of_code(value: object) -> object:
    """Return the JSON of a function, a frozen dataclass or a partial.

    Raises:
        OSError, TypeError, ValueError, RecursionError: the value is none of these, or its source
            or a value that it holds has no such form.
    """
    if isinstance(value, partial):
        fixed = cast("partial[object]", value)
        return {"partial": [state_of(part) for part in (fixed.func, fixed.args, fixed.keywords)]}
    if isfunction(value):
        return state_of_function(value)
    if is_dataclass(value) and not isinstance(value, type):
        return state_of_dataclass(value)
    raise TypeError(f"{as_text(value)} is a {type(value).__name__}")


def state_of_function(function: FunctionType) -> object:
    """Return the JSON of a function, with its closure variables."""
    if function.__name__ == "<lambda>":
        raise TypeError("a lambda has no name")
    code = function.__code__
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return {
        "function": as_text(function),
        "source": source_digest(code),
        "defaults": state_of([function.__defaults__, function.__kwdefaults__]),
        "variables": state_of(dict(zip(code.co_freevars, cells, strict=True))),
        "attributes": state_of(vars(function)),
    }


def state_of_dataclass(instance: Any) -> object:  # Any: of any dataclass
    """Return the JSON of an instance of a frozen dataclass."""
    kind: Any = instance.__class__
    if not kind.__dataclass_params__.frozen:
        raise TypeError(f"{as_text(instance)} is not frozen")
    own_bases = [base for base in kind.__mro__ if not of_python(base)]
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "source": [source_digest(base) for base in own_bases],
        "state": {
            field.name: state_of(getattr(instance, field.name)) for field in fields(instance)
        },
    }


def of_python(kind: type) -> bool:
    """Return whether a class belongs to Python's standard library."""
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names


@cache
def source_digest(source: type | CodeType) -> str:
    """Return the digest of a source text, read once per process: later edits do not count."""
    return digest_of(getsource(source))[:SHORT]
