"""Sides that need no training: laws, which are exact, and simulations, which have seeds.

Both name a function as `module:function`, which is called when the claim is judged. It has to call
what trains and scores, never a copy of it.
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
    """A function by name, with its arguments."""

    function: str
    positional: tuple[object, ...]
    keywords: Mapping[str, object]

    def __str__(self) -> str:
        given = [*map(str, self.positional), *(f"{k}={v}" for k, v in self.keywords.items())]
        return f"{self.function.rpartition(':')[2]}({', '.join(given)})"

    def find(self) -> Callable[..., Any]:  # Any: functions of several signatures and results
        """The function.

        Raises:
            BadClaim: no module or function of that name.
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
    """Values that a function computes exactly, one for each of its cases."""

    call: Call

    def __str__(self) -> str:
        return str(self.call)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Exact."""
        return frozenset({"exact"})

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """What the function gives: a number, or one for each case."""
        del cases
        return [*self.computed]

    @cached_property
    def computed(self) -> list[float]:
        """What the function gives, which is called once, whoever asks."""
        found: Sequence[float] | float = self.call.find()(
            *self.call.positional, **self.call.keywords
        )
        return checked(self, found if isinstance(found, Sequence) else [found])


@dataclass(frozen=True, eq=False)
class Simulated(Side):
    """One value a seed, from a function that is given the seed."""

    call: Call
    seeds: int

    def __str__(self) -> str:
        return str(self.call)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Simulated."""
        return frozenset({"simulated"})

    def values(self, cases: Sequence[Runs]) -> list[float]:
        """What the function gives for seeds from 0 on."""
        del cases
        simulate = self.call.find()
        keywords = self.call.keywords
        return checked(
            self, [simulate(*self.call.positional, seed=n, **keywords) for n in range(self.seeds)]
        )


def law(function: str, *arguments: object, **keywords: object) -> Law:
    """The values that `module:function` computes exactly with these arguments."""
    return Law(Call(function, arguments, keywords))


def simulated(function: str, *arguments: object, seeds: int, **keywords: object) -> Simulated:
    """The values that `module:function` gives for `seed` from 0 to `seeds` - 1."""
    return Simulated(Call(function, arguments, keywords), seeds)


def checked(what: object, values: Sequence[float]) -> list[float]:
    """The values as floats.

    Raises:
        BadClaim: there are none, or one of them is not a number.
    """
    found = [float(value) for value in values]
    if not found or any(map(isnan, found)):
        raise BadClaim(f"{what} gives {found}: expected numbers")
    return found
