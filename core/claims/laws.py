"""Sides that need no training: laws, which are exact, and simulations, which have seeds.

Both name a function as `module:function`, which is called when the claim is judged. The function
must call the code that trains and scores, not a copy of that code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import isnan
from typing import Any

from core.claims.comparison import Side
from core.claims.needs import BadClaim, Kind, Runs


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
    """A side with one value per seed, from a function that takes the seed."""

    call: Call
    seeds: int

    def __str__(self) -> str:
        return str(self.call)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kind "simulated"."""
        return frozenset({"simulated"})

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """Return what the function computes for each seed from 0 to `seeds` - 1."""
        del cases
        simulate = self.call.find()
        keywords = self.call.keywords
        return as_numbers(
            self, [simulate(*self.call.positional, seed=n, **keywords) for n in range(self.seeds)]
        )


def law(function: str, *arguments: object, **keywords: object) -> Law:
    """Return the side of the values that `module:function` computes exactly from arguments."""
    return Law(Call(function, arguments, keywords))


def simulated(function: str, *arguments: object, seeds: int, **keywords: object) -> Simulated:
    """Return the side of the values of `module:function` for `seed` from 0 to `seeds` - 1."""
    return Simulated(Call(function, arguments, keywords), seeds)


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
