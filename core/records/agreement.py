"""Equality of stored values up to the last digits of their numbers."""

from typing import cast

EXACT = 1e-9  # of what the same numbers give again: sums may be taken in another order


def agree(first: object, second: object, tolerance: float = EXACT) -> bool:
    """Return whether two JSON values are equal up to a tolerance of their numbers.

    The tolerance is relative, and absolute for numbers below 1.
    """
    if isinstance(first, int | float) and isinstance(second, int | float):
        same_type = isinstance(first, bool) == isinstance(second, bool)
        return same_type and abs(first - second) <= tolerance * max(1.0, abs(second))
    if isinstance(first, list) and isinstance(second, list):
        first_list, second_list = cast(list[object], first), cast(list[object], second)
        pairs = zip(first_list, second_list, strict=False)
        return len(first_list) == len(second_list) and all(agree(a, b, tolerance) for a, b in pairs)
    if isinstance(first, dict) and isinstance(second, dict):
        first_fields = cast(dict[str, object], first)
        second_fields = cast(dict[str, object], second)
        return first_fields.keys() == second_fields.keys() and all(
            agree(value, second_fields[name], tolerance) for name, value in first_fields.items()
        )
    return first == second
