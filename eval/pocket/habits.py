"""How often the fallible solver goes wrong: a fixed rate for every kind of decision and context."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from eval.pocket.plan import Cue

LOWEST, HIGHEST = 0.01, 0.97
OWN_LANGUAGE = 25  # percent of contexts with a rate of their own in each language
NORMAL = NormalDist()


@dataclass(frozen=True)
class Habit:
    """Shares of contexts whose majority is the mistake, and of those where right is rare.

    The other contexts have rates from `LOWEST` to `common`.
    """

    wrong: float
    rare: float = 0.0
    common: float = 0.075


@dataclass(frozen=True)
class Habits:
    """The habits of a solver by kind of decision; `seed` draws which contexts are hard."""

    of: Mapping[str, Habit] = field(default_factory=lambda: HABITS)
    seed: int = 5

    def rate(self, kind: str, context: Cue, language: str) -> float:
        """The share of mistakes in a context: a pure function of it."""
        return rate(self.of[kind], self.seed, kind, context, language)


HABITS: Mapping[str, Habit] = {
    "event": Habit(0.07, 0.02),
    "compared": Habit(0.095, 0.025),
    "undo": Habit(0.2, 0.04),
    "denominator": Habit(0.24, 0.05),
    "order": Habit(0.28, 0.04),
    "carry": Habit(0.13, 0.035),
    "product": Habit(0.085, 0.03),
    "quotient": Habit(0.1, 0.025),
    "remainder": Habit(0.3, 0.05),
    "reduction": Habit(0.3, 0.05),
    "unit": Habit(0.17, 0.04),
    "distractor": Habit(0.17, 0.04),
    "skip": Habit(0.0, 0.0, 0.015),
    "stale": Habit(0.0, 0.0, 0.015),
}


@lru_cache(maxsize=100_000)
def rate(habit: Habit, seed: int, kind: str, context: Cue, language: str) -> float:
    """A rate by the rank of the context: an effect of its first part, and as much of its own."""
    own = drawn(seed, kind, "language", *context) * 100 < OWN_LANGUAGE
    spoken = (language,) if own else ()
    group = NORMAL.inv_cdf(drawn(seed, kind, "group", context[0]))
    alone = NORMAL.inv_cdf(drawn(seed, kind, *context, *spoken))
    rank = NORMAL.cdf((group + alone) / sqrt(2))
    if rank < 1 - habit.wrong:
        return LOWEST + (habit.common - LOWEST) * rank / (1 - habit.wrong)
    if rank < 1 - habit.rare:
        return 0.6 + 0.28 * (rank - 1 + habit.wrong) / (habit.wrong - habit.rare)
    return 0.92 + (HIGHEST - 0.92) * (rank - 1 + habit.rare) / habit.rare


def drawn(*parts: object) -> float:
    """A number between 0 and 1 that the parts alone decide."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return (int.from_bytes(digest[:7]) + 0.5) / 2**56
