"""Bounds of the settings of trainers, checked before anything loads."""

from collections.abc import Mapping

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
        config: The class of a family's config, which may have tables `CHOICES` and `AT_LEAST`.
        name: The name of the field.
        value: The value.
    """
    choices: Mapping[str, tuple[object, ...]] = getattr(config, "CHOICES", {})
    bounds: Mapping[str, float] = {**getattr(config, "AT_LEAST", {}), **AT_LEAST}
    if value not in choices.get(name, (value,)):
        return f"expected {' or '.join(map(repr, choices[name]))}"
    if not isinstance(value, int | float):
        return None
    if value < bounds.get(name, value):
        return f"expected at least {bounds[name]:g}"
    if name in BELOW_ONE and isinstance(value, float) and value >= 1.0:
        return "expected below 1"
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
