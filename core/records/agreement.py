"""Whether two stored values are the same but for the last digits of their numbers."""

from typing import Any, cast

EXACT = 1e-9  # of what the same numbers give again: sums may be taken in another order


def agree(one: Any, other: Any, tolerance: float = EXACT) -> bool:  # Any: JSON of several types
    """Whether two values are equal, numbers up to a relative (below 1 an absolute) tolerance."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        same_type = isinstance(one, bool) == isinstance(other, bool)
        return same_type and abs(one - other) <= tolerance * max(1.0, abs(other))
    if isinstance(one, list) and isinstance(other, list):
        here, there = cast(list[Any], one), cast(list[Any], other)
        pairs = zip(here, there, strict=False)
        return len(here) == len(there) and all(agree(a, b, tolerance) for a, b in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        rows, others = cast(dict[str, Any], one), cast(dict[str, Any], other)
        return rows.keys() == others.keys() and all(
            agree(value, others[name], tolerance) for name, value in rows.items()
        )
    return one == other
