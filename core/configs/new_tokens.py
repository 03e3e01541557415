"""A setting with two names: `max_new_tokens` and `max_completion_length`."""

from typing import Any

from eval.errors import BadValue


def take_new_tokens(config: Any) -> None:  # Any: a config with both fields
    """Give both names of the longest completion the same value.

    Raises:
        BadValue: they are set to different values.
    """
    given = [n for n in ("max_new_tokens", "max_completion_length") if config.is_set(n)]
    values = {getattr(config, name) for name in given}
    if len(values) > 1:
        raise BadValue(
            f"max_new_tokens={config.max_new_tokens} and max_completion_length="
            f"{config.max_completion_length} are two names of one setting: leave one of them out"
        )
    for value in values:
        config.max_new_tokens = config.max_completion_length = value
