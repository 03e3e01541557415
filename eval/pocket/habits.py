"""The error rates of the fallible solver: a fixed rate for every kind of decision and context."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from eval.pocket.plan import Cue

LOWEST, HIGHEST = 0.01, 0.97
LANGUAGE_SHARE = 25  # percent of contexts whose rate differs between the languages
NORMAL = NormalDist()


@dataclass(frozen=True)
class Habit:
    """The distribution of the error rate over the contexts of one kind of decision.

    In a share `wrong` of the contexts the mistake has the majority, and in a share `rare` the right
    decision is rare. The other contexts have rates from `LOWEST` to `common`.
    """

    wrong: float
    rare: float = 0.0
    common: float = 0.075


@dataclass(frozen=True)
class Habits:
    """The habits of a solver by kind of decision; `seed` draws which contexts are hard."""

    by_kind: Mapping[str, Habit] = field(default_factory=lambda: HABITS)
    seed: int = 5

    def rate(self, kind: str, context: Cue, language: str) -> float:
        """Return the error rate in a context, a pure function of the context."""
        return error_rate(self.by_kind[kind], self.seed, kind, context, language)


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
def error_rate(habit: Habit, seed: int, kind: str, context: Cue, language: str) -> float:
    """Return the error rate of a context by its rank among all contexts.

    The rank is half an effect of the context's first part and half one of the whole context.
    """
    has_language_rate = uniform_hash(seed, kind, "language", *context) * 100 < LANGUAGE_SHARE
    languages = (language,) if has_language_rate else ()
    group_effect = NORMAL.inv_cdf(uniform_hash(seed, kind, "group", context[0]))
    context_effect = NORMAL.inv_cdf(uniform_hash(seed, kind, *context, *languages))
    rank = NORMAL.cdf((group_effect + context_effect) / sqrt(2))
    if rank < 1 - habit.wrong:
        return LOWEST + (habit.common - LOWEST) * rank / (1 - habit.wrong)
    if rank < 1 - habit.rare:
        return 0.6 + 0.28 * (rank - 1 + habit.wrong) / (habit.wrong - habit.rare)
    return 0.92 + (HIGHEST - 0.92) * (rank - 1 + habit.rare) / habit.rare


def uniform_hash(*parts: object) -> float:
    """Return a number between 0 and 1 from the SHA-256 of the parts."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return (int.from_bytes(digest[:7]) + 0.5) / 2**56
