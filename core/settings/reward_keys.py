"""What a reward is, for the key of a training: where it is defined, its source text, its state."""

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
    """What a reward computes, as far as its own text and state say it.

    A function counts with its module, name and source text, its defaults, its attributes and the
    variables that it closes over; a frozen dataclass with its class, the classes that it extends
    and its fields; a `functools.partial` with what it fixes. What a reward calls elsewhere and the
    globals that it reads are out of reach: after a change there, run with --force.

    Raises:
        BadValue: it is none of these, or holds something that is none of these and no plain value.
    """
    try:
        return state_of(reward)
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise BadValue(
            f"reward {as_text(reward)}: {error}, so its training has no key: make it a function "
            "(def) of a module, or a frozen dataclass of plain values"
        ) from error


def state_of(value: object) -> object:
    """A plain value as JSON, a function or dataclass by what it is.

    Raises:
        OSError, TypeError, ValueError, RecursionError: there is no such form of it.
    """
    if isinstance(value, partial):
        fixed = cast("partial[object]", value)
        return {"partial": [state_of(part) for part in (fixed.func, fixed.args, fixed.keywords)]}
    if isfunction(value):
        return state_of_function(value)
    if is_dataclass(value) and not isinstance(value, type):
        return state_of_dataclass(value)
    if callable(value):
        raise TypeError(f"{as_text(value)} is a {type(value).__name__}")
    if isinstance(value, Mapping):
        rows = cast(Mapping[object, object], value)
        return {str(name): state_of(item) for name, item in rows.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [state_of(item) for item in cast(Sequence[object], value)]
    return canonical(value)


def state_of_function(function: FunctionType) -> object:
    """A function of a module, or one that another function made."""
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
    """An instance of a frozen dataclass."""
    kind: Any = instance.__class__
    if not kind.__dataclass_params__.frozen:
        raise TypeError(f"{as_text(instance)} is not frozen")
    written = [each for each in kind.__mro__ if not of_python(each)]
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "source": [source_digest(each) for each in written],
        "state": {
            field.name: state_of(getattr(instance, field.name)) for field in fields(instance)
        },
    }


def of_python(kind: type) -> bool:
    """Whether a class is of Python's own library."""
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names


@cache
def source_digest(what: type | CodeType) -> str:
    """Digest of a source text, read once: an edit while a run goes on is for the next one."""
    return digest_of(getsource(what))[:SHORT]
