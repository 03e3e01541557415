"""Conversion of ShareGPT conversations (`from`, `value`) to ChatML messages (`role`, `content`)."""

from collections.abc import Mapping

from core.data.best_fit import Data
from eval.sets.loading import Row

NAMES = {"from": "role", "value": "content"}
ANSWERS = ("chosen", "rejected", "reference")
MESSAGES = ("prompt", "completion", *ANSWERS, "messages", "conversations")


def is_conversational(example: Row) -> bool:
    """Return whether a row holds a list of messages with roles."""
    return any(starts_with(example.get(key), {"role"}) for key in MESSAGES[:-1])


def is_conversational_from_value(example: Row) -> bool:
    """Return whether a row's `conversations` are messages of `from` and `value`."""
    return starts_with(example.get("conversations"), {"from", "value"})


def starts_with(messages: object, keys: set[str]) -> bool:
    """Return whether a value is a list whose first message has these keys."""
    first = messages[0] if isinstance(messages, list) and messages else None
    return isinstance(first, Mapping) and keys <= first.keys()


def maybe_convert_to_chatml(example: Row) -> Row:
    """Convert a row's messages to `role` and `content`.

    A column `conversations` is renamed to `messages`.
    """
    row = {
        key: rename_fields(value) if key in MESSAGES else value for key, value in example.items()
    }
    if "conversations" in row:
        row["messages"] = row.pop("conversations")
    return row


def rename_fields(messages: object) -> object:
    """Rename the fields of messages to ChatML's; values other than lists are returned unchanged."""
    if not isinstance(messages, list):
        return messages
    return [
        {NAMES.get(key, key): value for key, value in message.items()}
        if isinstance(message, Mapping)
        else message
        for message in messages
    ]


def to_chatml(dataset: Data) -> Data:
    """Convert a dataset to ChatML if its first row has a column of conversations to convert.

    These are a column `conversations`, or any message column with ShareGPT's fields; a dataset
    without them is returned as it is.
    """
    first = next(iter(dataset), {})
    has_sharegpt_fields = any(starts_with(first.get(key), set(NAMES)) for key in MESSAGES)
    if not has_sharegpt_fields and "conversations" not in first:
        return dataset
    return dataset.map(maybe_convert_to_chatml, remove_columns=[k for k in MESSAGES if k in first])
