"""Conversations of `from` and `value` (ShareGPT) as messages of `role` and `content`."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]  # Any: text, messages, or another column's value

NAMES = {"from": "role", "value": "content"}
MESSAGES = ("prompt", "completion", "chosen", "rejected", "messages", "conversations")


def is_conversational(example: Row) -> bool:
    """Whether a row holds a list of messages with roles."""
    return any(starts_with(example.get(key), {"role"}) for key in MESSAGES[:-1])


def is_conversational_from_value(example: Row) -> bool:
    """Whether a row's `conversations` are messages of `from` and `value`."""
    return starts_with(example.get("conversations"), {"from", "value"})


def starts_with(messages: Any, keys: set[str]) -> bool:
    """Whether this is a list whose first message has these keys."""
    first = messages[0] if isinstance(messages, list) and messages else None
    return isinstance(first, Mapping) and keys <= first.keys()


def maybe_convert_to_chatml(example: Row) -> dict[str, Any]:
    """A row with messages of `role` and `content`, and `messages` for `conversations`."""
    row = {key: renamed(value) if key in MESSAGES else value for key, value in example.items()}
    if "conversations" in row:
        row["messages"] = row.pop("conversations")
    return row


def renamed(messages: Any) -> Any:
    """Messages with the names of ChatML; what is no list of them stays."""
    if not isinstance(messages, list):
        return messages
    return [
        {NAMES.get(key, key): value for key, value in message.items()}
        if isinstance(message, Mapping)
        else message
        for message in messages
    ]


def in_chatml(dataset: Any) -> Any:  # Any: a Dataset or an IterableDataset
    """The dataset with its conversations in ChatML, if its first row has them otherwise."""
    first = next(iter(dataset), {})
    named = any(starts_with(first.get(key), set(NAMES)) for key in MESSAGES)
    if not named and "conversations" not in first:
        return dataset
    return dataset.map(maybe_convert_to_chatml, remove_columns=[k for k in MESSAGES if k in first])
