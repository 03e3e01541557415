"""Sides that need no training: laws, which are exact, and simulations, which have seeds.

Both name a function as `module:function`. A law calls it when the claim is judged; the values of a
simulation are computed beforehand and read from a record. The function must call the code that
trains and scores, not a copy of that code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from math import isnan
from typing import Any, TypeVar, cast

from core.claims.comparison import Comparison, Side
from core.claims.needs import BadClaim, Kind, MissingMeasure, Runs

S = TypeVar("S", Side, Comparison)


@dataclass(frozen=True)
class Call:
    """A function by name, `module:function`, with its arguments."""

    function: str
    positional: tuple[object, ...]
    keywords: Mapping[str, object]

    def __str__(self) -> str:
        arguments = [*map(str, self.positional), *(f"{k}={v}" for k, v in self.keywords.items())]
        return f"{self.function.rpartition(':')[2]}({', '.join(arguments)})"

    def find(self) -> Callable[..., Any]:  # Any: functions of several signatures and results
        """Import and return the function.

        Raises:
            BadClaim: there is no module or function of that name.
        """
        module, _, name = self.function.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise BadClaim(
                f"no function {self.function!r} ({error}): expected module:function"
            ) from error


@dataclass(frozen=True, eq=False)
class Law(Side):
    """A side whose values a function computes exactly, one per case of its own."""

    call: Call

    def __str__(self) -> str:
        return str(self.call)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "exact"."""
        return frozenset({"exact"})

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return what the function computes: a single number, or one per case."""
        del cases
        return [*self.computed]

    @cached_property
    def computed(self) -> list[float]:
        """The values of the function, which is called once."""
        function = self.call.find()
        values: Sequence[float] | float = function(*self.call.positional, **self.call.keywords)
        return as_numbers(self, values if isinstance(values, Sequence) else [values])


@dataclass(frozen=True, eq=False)
class Simulated(Side):
    """A side with one value per seed, from a function that takes the seed.

    Attributes:
        call: The function with its arguments beside the seed.
        seeds: Their number; they count from 0.
        timed: Whether the function measures time or memory, which differ from call to call.
        recorded: Values of an earlier computation, one for each seed; empty if none is stored.
    """

    call: Call
    seeds: int
    timed: bool = field(default=False, repr=False)
    recorded: tuple[float, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return str(self.call)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "simulated"."""
        return frozenset({"simulated"})

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return the recorded values, one for each seed.

        Raises:
            MissingMeasure: no values are recorded.
        """
        del cases
        if not self.recorded:
            raise MissingMeasure(f"no record of {self} (use --claims)")
        return [*self.recorded]

    def simulate(self) -> list[float]:
        """Call the function with each seed from 0 to `seeds` - 1, and return its values."""
        return [self.at(seed) for seed in range(self.seeds)]

    def at(self, seed: int) -> float:
        """Call the function with one seed, and return its value."""
        value: float = self.call.find()(*self.call.positional, seed=seed, **self.call.keywords)
        return as_numbers(self, [value])[0]


def law(function: str, *arguments: object, **keywords: object) -> Law:
    """Return the side of the values that `module:function` computes exactly from arguments."""
    return Law(Call(function, arguments, keywords))


def simulated(function: str, *arguments: object, seeds: int, **keywords: object) -> Simulated:
    """Return the side of the values of `module:function` for `seed` from 0 to `seeds` - 1."""
    return Simulated(Call(function, arguments, keywords), seeds)


def timed(function: str, *arguments: object, seeds: int, **keywords: object) -> Simulated:
    """Return a side as `simulated` does, of a function that measures time or memory."""
    return Simulated(Call(function, arguments, keywords), seeds, timed=True)


def simulations_in(side: Side) -> Iterator[Simulated]:
    """Yield the simulations that a side is computed from."""
    if isinstance(side, Simulated):
        yield side
    for part in side.parts:
        yield from simulations_in(part)


def with_recorded(side: S, recorded: Callable[[Simulated], Sequence[float]]) -> S:
    """Return a copy of a side or comparison whose simulations hold the values of `recorded`."""
    if isinstance(side, Simulated):
        return replace(side, recorded=tuple(recorded(side)))

    def of_part(part: object) -> object:
        if isinstance(part, tuple):
            return tuple(map(of_part, cast(tuple[object, ...], part)))
        return with_recorded(part, recorded) if isinstance(part, Side) else part

    parts = {each.name: of_part(getattr(side, each.name)) for each in fields(cast(Any, side))}
    return replace(cast(Any, side), **parts)


def as_numbers(subject: object, values: Sequence[float]) -> list[float]:
    """Return the values as floats.

    Args:
        subject: the side, for the error.
        values: that its function returned.

    Raises:
        BadClaim: there are no values, or one of them is NaN.
    """
    numbers = [float(value) for value in values]
    if not numbers or any(map(isnan, numbers)):
        raise BadClaim(f"{subject} gives {numbers}: expected numbers")
    return numbers
