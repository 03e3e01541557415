"""Preparation of pairs for reward models: both texts as token ids, with an optional margin."""

from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any

from datasets import Dataset
from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.data.best_fit import Data
from core.data.chatml import to_chatml
from core.data.conversations import Row, chat, template_keywords
from core.data.dropped_rows import kept_rows
from core.data.pair_columns import MARGIN
from core.data.pairs import ANSWERS
from core.data.preparation import column_names
from core.data.sft import with_end_token
from core.errors import MissingColumn
from eval.errors import BadValue

IDS = ("chosen_ids", "rejected_ids")
logger = logging.get_logger(__name__)


def tokenize_scored_pairs(
    dataset: Data,
    tokenizer: Tokenizer,
    max_length: int | None = None,
    workers: int | None = None,
) -> Data:
    """Convert rows of `chosen` and `rejected` to the token ids of both texts.

    A column `prompt` is put before both. Rows of token ids, `chosen_ids` and `rejected_ids`, keep
    them. Rows with a text of no token or of more than `max_length` tokens, and rows with equal
    texts, are dropped; their numbers are logged.

    Args:
        dataset: a Dataset or IterableDataset of texts, conversations or token ids.
        tokenizer: the model's tokenizer.
        max_length: largest number of tokens of a text.
        workers: number of processes.

    Returns:
        Rows of `chosen_ids`, `rejected_ids` and, if the dataset has this column, `margin`.

    Raises:
        BadValue: the value is no dataset or has images, a margin is no finite number, a prompt and
            an answer are not both texts or both conversations, or no row is left.
        MissingColumn: a column is missing.
    """
    columns = column_names(dataset)
    is_encoded = columns >= {*IDS}
    if missing := [name for name in ANSWERS if name not in columns and not is_encoded]:
        raise MissingColumn("the dataset", missing, columns, "each row needs its two answers")
    options: dict[str, Any] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    rows: Data = to_chatml(dataset).with_format(None)
    encoded = rows.map(
        partial(encode_scored, tokenizer=tokenizer, is_encoded=is_encoded),
        with_indices=True,
        remove_columns=sorted(columns.difference(IDS, {MARGIN})),
        **options,  # Any: an IterableDataset takes fewer
    )
    fitting = kept_rows(encoded, partial(fits, max_length=max_length), length_reason(max_length))
    return kept_rows(
        fitting,
        is_different,
        "their two texts are equal",
        none=(
            f"no pair of the dataset has two different texts within max_length={max_length}: give "
            "rows, or a greater max_length"
        ),
    )


def encode_scored(row: Row, index: int, tokenizer: Tokenizer, is_encoded: bool) -> Row:
    """Return the token ids of both texts of a row, and its margin if it has one.

    Raises:
        BadValue: the margin is no finite number, or see `encode_whole`.
    """
    if MARGIN in row:
        check_margin(row[MARGIN], index)
    kept = {MARGIN: row[MARGIN]} if MARGIN in row else {}
    if is_encoded:
        return {**{name: list(row[name]) for name in IDS}, **kept}
    ids = [encode_whole(row, name, tokenizer) for name in ANSWERS]
    return {**dict(zip(IDS, ids, strict=True)), **kept}


def check_margin(margin: object, index: int) -> None:
    """Raise `BadValue` with the number of the row if a margin is no finite number."""
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not isfinite(margin):
        raise BadValue(f"row {index} of the dataset: margin={margin!r}, expected a finite number")


def encode_whole(row: Row, name: str, tokenizer: Tokenizer) -> Sequence[int]:
    """Return the token ids of the prompt of a row, if it has one, and of an answer.

    A text ends with the end token; conversations go through the chat template.

    Raises:
        BadValue: one of them is a text and the other a conversation, or the answer is neither.
    """
    prompt, answer = row.get("prompt"), row[name]
    if isinstance(answer, str) and isinstance(prompt, str | None):
        return tokenizer((prompt or "") + with_end_token(answer, tokenizer))["input_ids"]
    if isinstance(answer, list) and isinstance(prompt, list | None):
        text = chat(tokenizer, [*(prompt or []), *answer], template_keywords(row))
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    raise BadValue(
        f"{name}={answer!r} with prompt={prompt!r} in the dataset: expected texts or lists of "
        "messages"
    )


def fits(row: Row, max_length: int | None) -> bool:
    """Return whether both texts of a row have a token, and at most `max_length`."""
    lengths = [len(row[name]) for name in IDS]
    return min(lengths) > 0 and (max_length is None or max(lengths) <= max_length)


def length_reason(max_length: int | None) -> str:
    """Return why `fits` drops a row."""
    longer = "" if max_length is None else f", or more than max_length={max_length}"
    return f"a text of theirs has no token{longer}"


def is_different(row: Row) -> bool:
    """Return whether the texts of a row differ."""
    return row[IDS[0]] != row[IDS[1]]
