"""Preparation of preference data: rows of prompt, chosen and rejected as token ids."""

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from datasets import Dataset
from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.configs.sft import TRUNCATIONS
from core.data.best_fit import Data
from core.data.chatml import to_chatml
from core.data.conversations import Row
from core.data.preparation import column_names
from core.data.sft import join_ids, pair_texts
from core.errors import MissingColumn
from eval.errors import BadValue

ANSWERS = ("chosen", "rejected")
PAIR_COLUMNS = tuple(f"{name}_{part}" for name in ANSWERS for part in ("prompt_ids", "ids"))
REF_COLUMNS = tuple(f"ref_{name}_logps" for name in ANSWERS)
WIN_COLUMNS = tuple(f"{name}_win_rate" for name in ANSWERS)  # which the loss `sppo` reads
logger = logging.get_logger(__name__)


def tokenize_pairs(
    dataset: Data,
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    truncation: str = "keep_start",
    workers: int | None = None,
    shares: Sequence[str] = (),
) -> Data:
    """Convert rows of `prompt`, `chosen` and `rejected` to token ids of prompts and answers.

    Without a column `prompt`, the prompt is what both answers begin with; with `rejected_prompt`,
    the rejected answer is one to that prompt. Rows of which an answer
    has no token within `max_length` are dropped, and their number is logged.

    Args:
        dataset: a Dataset or IterableDataset of texts or conversations.
        tokenizer: the model's tokenizer.
        max_length: largest number of tokens of a prompt with an answer.
        truncation: which tokens of a longer sequence are kept, a name of `TRUNCATIONS`.
        workers: number of processes.
        shares: names of columns of numbers from 0 to 1, which are kept.

    Raises:
        BadValue: the value is no dataset or has images, both answers of a row are equal, a share is
            no number from 0 to 1, or no row is left.
        MissingColumn: a column is missing.
    """
    columns = column_names(dataset)
    if missing := [name for name in (*ANSWERS, *shares) if name not in columns]:
        raise MissingColumn("the dataset", missing, columns, "a pair needs them")
    processes: dict[str, object] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    encode = partial(encode_answers, tokenizer=tokenizer, max_length=max_length, kept=truncation)
    rows: Data = to_chatml(dataset).with_format(None)
    if shares:
        rows = rows.map(partial(check_shares, names=shares))
    encoded = rows.map(encode, remove_columns=sorted(columns.difference(shares)), **processes)
    whole = encoded.filter(has_answers)
    if isinstance(whole, Dataset) and len(whole) < len(encoded):
        logger.warning(
            f"{len(encoded) - len(whole)} of {len(encoded)} pairs are dropped: an answer has no "
            f"token within max_length={max_length}"
        )
    if next(iter(whole), None) is None:
        raise BadValue(
            f"no pair of the dataset has two answers within max_length={max_length}: give rows, or "
            "a greater max_length"
        )
    return whole


def check_shares(row: Row, names: Sequence[str]) -> Row:
    """Return the row; raise `BadValue` if a column of these names is no number from 0 to 1."""
    for name in names:
        if not (isinstance(row[name], int | float) and 0 <= row[name] <= 1):
            raise BadValue(f"{name} is {row[name]!r}: expected a number from 0 to 1")
    return row


def encode_answers(
    row: Row, tokenizer: Tokenizer, max_length: int | None, kept: str
) -> dict[str, Sequence[int]]:
    """Return the token ids of a row's answers, and of the prompt before each.

    Raises:
        BadValue: both answers to a prompt are equal.
    """
    pair = row if "prompt" in row else split_prompt(row)
    if pair["chosen"] == pair["rejected"] and not pair.get("rejected_prompt"):
        raise BadValue(f"chosen and rejected are both {pair['chosen']!r}: expected two answers")
    ids = dict[str, Sequence[int]]()
    for name in ANSWERS:
        asked = pair.get(f"{name}_prompt") or pair["prompt"]
        prompt, full_text = pair_texts(
            {**row, **pair, "prompt": asked, "completion": pair[name]}, tokenizer
        )
        plain = isinstance(asked, str)
        start = tokenizer(prompt, add_special_tokens=plain)["input_ids"]
        whole = join_ids(tokenizer, prompt, full_text, start, plain)
        begin = common_length(start, whole)
        parts = whole[:begin], whole[begin:]
        ids[f"{name}_prompt_ids"], ids[f"{name}_ids"] = truncate(*parts, max_length, kept)
    return ids


def prompt_of(row: Row) -> Any:
    """Return the prompt of a row, or of a pair what both answers begin with; Any: text or turns."""
    return row["prompt"] if "prompt" in row else split_prompt(row)["prompt"]


def split_prompt(row: Row) -> Row:
    """Return prompt, chosen and rejected of a row whose answers begin with the prompt.

    Of texts, the prompt ends where they first differ, before a space.
    """
    chosen, rejected = row["chosen"], row["rejected"]
    length = common_length(chosen, rejected)
    if isinstance(chosen, str) and length and chosen[length - 1] == " ":
        length -= 1
    answers = {"chosen": chosen[length:], "rejected": rejected[length:]}
    return {"prompt": chosen[:length], **answers}


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common beginning of two sequences."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def truncate(
    prompt: Sequence[int], answer: Sequence[int], max_length: int | None, kept: str
) -> tuple[Sequence[int], Sequence[int]]:
    """Return prompt and answer cut to `max_length` tokens by the row `kept` of `TRUNCATIONS`."""
    if max_length is None:
        return prompt, answer
    places = range(len(prompt) + len(answer))[TRUNCATIONS[kept].kept(max_length)]
    whole = [*prompt, *answer]
    first = [whole[place] for place in places if place < len(prompt)]
    return first, [whole[place] for place in places if place >= len(prompt)]


def has_answers(row: Row) -> bool:
    """Return whether both answers of a row have a token, each after one of a prompt."""
    return all(row[name] for name in PAIR_COLUMNS)
