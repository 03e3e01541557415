"""Differences that count as none, by the unit of the values that a claim compares."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["accuracy", "reward", "entropy", "tokens", "other"]

# In points of accuracy, in nats of entropy. A claim's own margin takes precedence.
EQUAL: Mapping[Unit, float] = {"accuracy": 2.0, "reward": 0.02, "entropy": 0.01, "tokens": 1.0}
EQUAL_SHARE = 0.1  # of the base arm's value, for all other units
METRICS: Mapping[Unit, Sequence[str]] = {
    "accuracy": ("held_out/accuracy", "benchmark/*"),
    "reward": ("reward", "rewards/*/mean"),
    "entropy": ("entropy",),
    "tokens": ("completions/*length",),
}
IN_WORDS = "2 points of accuracy, 0.02 of reward, 0.01 nats of entropy, 1 token or else a tenth"


def unit_of(metric: str) -> Unit:
    """Return the unit of the values of a logged metric."""
    for unit, patterns in METRICS.items():
        if any(fnmatchcase(metric, pattern) for pattern in patterns):
            return unit
    return "other"


def equality_margin(unit: Unit, base: Sequence[float]) -> float:
    """Return the size below which a difference counts as none.

    Args:
        unit: of the compared values.
        base: the values of the side that is compared with; empty before any run.
    """
    if unit in EQUAL:
        return EQUAL[unit]
    return EQUAL_SHARE * abs(sum(base) / len(base)) if base else 0.0
