"""Bounds of the settings of trainers, checked before anything loads."""

from collections.abc import Mapping

from core.configs.base import BaseConfig
from core.configs.ranges import NUMBER, Range, at_least
from eval.errors import BadValue

NOT_ZERO: Mapping[str, str] = {
    "max_steps": "transformers takes 0 for 1; expected at least 1, or -1 for all of the epochs",
    "num_train_epochs": "nothing would be trained; expected above 0",
}
# Ranges of a run that are narrower than those of a config.
OF_RUNS: Mapping[str, Range] = {
    "save_steps": at_least(1),
    "save_total_limit": at_least(2),  # the oldest checkpoint goes before the newest is sealed
}


def check_value(config: type[object], name: str, value: object, source: str) -> None:
    """Check a value against the choices and bounds of its field.

    Raises:
        BadValue: the value is not among the choices or out of bounds; the message names its source.
    """
    expected = expected_value(config, name, value)
    if expected is not None:
        raise BadValue(f"{name}={value!r} ({source}): {expected}")


def expected_value(config: type[object], name: str, value: object) -> str | None:
    """Return which values a field takes, in words, if it does not take this one; else None.

    Args:
        config: The class of a family's config, which may have a table `CHOICES`.
        name: The name of the field.
        value: The value.
    """
    choices: Mapping[str, tuple[object, ...]] = getattr(config, "CHOICES", {})
    ranges = {**(config.ranges() if issubclass(config, BaseConfig) else {}), **OF_RUNS}
    if value not in choices.get(name, (value,)):
        return f"expected {' or '.join(map(repr, choices[name]))}"
    if not isinstance(value, int | float):
        return None
    if not ranges.get(name, NUMBER).contains(value):
        return f"expected {ranges.get(name, NUMBER).expected}"
    return NOT_ZERO.get(name) if value == 0 else None


def check_held_out(number: int, rows: int, *, of_their_own: bool) -> None:
    """Check that a number of rows can be held out of the data.

    Args:
        number: The number of rows to hold out.
        rows: The number of rows that they are taken from.
        of_their_own: Whether `rows` counts a split of its own, of which all rows may be held out.
            Otherwise at least one row must remain to train on.

    Raises:
        BadValue: `number` is too large; the message names the largest that is allowed.
    """
    largest = rows if of_their_own else max(0, rows - 1)
    if number > largest:
        raise BadValue(
            f"heldout_problems={number}: the data has {rows} rows "
            f"{'to hold out' if of_their_own else 'only'}; ask for at most {largest}, or leave it "
            "out"
        )
