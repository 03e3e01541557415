"""Bounds of the settings of trainers, checked before anything loads."""

from collections.abc import Mapping
from typing import Any

from eval.errors import BadValue

# Bounds that transformers does not check itself.
BELOW_ONE = ("adam_beta1", "adam_beta2")
NOT_ZERO: Mapping[str, str] = {
    "max_steps": "transformers takes 0 for 1; expected at least 1, or -1 for all of the epochs",
    "num_train_epochs": "nothing would be trained; expected above 0",
}
AT_LEAST: Mapping[str, float] = {
    "adam_beta1": 0.0,
    "adam_beta2": 0.0,
    "dataloader_num_workers": 0,
    "gradient_accumulation_steps": 1,
    "learning_rate": 0.0,
    "max_grad_norm": 0.0,
    "max_steps": -1,  # as many as the epochs have
    "num_train_epochs": 0.0,
    "per_device_train_batch_size": 1,
    "save_steps": 1,
    "save_total_limit": 2,  # the oldest checkpoint goes before the newest is sealed
    "weight_decay": 0.0,
}


def check_value(
    config: type[Any],  # Any: of a family's config, which may have tables of its own
    name: str,
    value: object,
    source: str,
) -> None:
    """Check a value against the choices and bounds of its field.

    Raises:
        BadValue: the value is not among the choices or out of bounds; the message names its source.
    """
    choices: Mapping[str, tuple[object, ...]] = getattr(config, "CHOICES", {})
    own: Mapping[str, float] = getattr(config, "AT_LEAST", {})
    bounds = {**own, **AT_LEAST}
    if name in choices and value not in choices[name]:
        known = " or ".join(repr(choice) for choice in choices[name])
        raise BadValue(f"{name}={value!r} ({source}): expected {known}")
    if name in bounds and isinstance(value, int | float) and value < bounds[name]:
        raise BadValue(f"{name}={value} ({source}): expected at least {bounds[name]:g}")
    if name in BELOW_ONE and isinstance(value, float) and value >= 1.0:
        raise BadValue(f"{name}={value} ({source}): expected below 1")
    if name in NOT_ZERO and value == 0:
        raise BadValue(f"{name}={value} ({source}): {NOT_ZERO[name]}")


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
    most = rows if of_their_own else max(0, rows - 1)
    if number > most:
        raise BadValue(
            f"heldout_problems={number}: the data has {rows} rows "
            f"{'to hold out' if of_their_own else 'only'}; ask for at most {most}, or leave it out"
        )
