"""Preparation of preference data: rows of a prompt and its answers as token ids."""

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
from core.data.dropped_rows import kept_rows
from core.data.preparation import column_names
from core.data.sft import join_ids, pair_texts
from core.errors import MissingColumn
from eval.errors import BadValue
from eval.json_lines import SHOWN

ANSWERS = ("chosen", "rejected")
GOLD = "reference"  # TRL's name of an answer beside the pair, which is trained on as it is
TRIPLE = (*ANSWERS, GOLD)
REF_COLUMNS = tuple(f"ref_{name}_logps" for name in ANSWERS)
logger = logging.get_logger(__name__)


def tokenize_pairs(
    dataset: Data,
    tokenizer: Tokenizer,
    *,
    answers: Sequence[str] = ANSWERS,
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
        answers: columns of answers, of which the first two are the pair.
        max_length: largest number of tokens of a prompt with an answer.
        truncation: which tokens of a longer sequence are kept, a name of `TRUNCATIONS`.
        workers: number of processes.
        shares: names of columns of numbers from 0 to 1, which are kept.

    Raises:
        BadValue: the value is no dataset or has images, both answers of a row are equal, another
            answer does not begin with their prompt, a share is no number from 0 to 1, or no row is
            left.
        MissingColumn: a column is missing.
    """
    columns = column_names(dataset)
    if missing := [name for name in (*answers, *shares) if name not in columns]:
        raise MissingColumn("the dataset", missing, columns, "each row needs its answers")
    processes: dict[str, object] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    options = {"max_length": max_length, "kept": truncation, "answers": answers}
    encode = partial(encode_answers, tokenizer=tokenizer, **options)
    rows: Data = to_chatml(dataset).with_format(None)
    if shares:
        rows = rows.map(partial(check_shares, names=shares))
    encoded = rows.map(encode, remove_columns=sorted(columns.difference(shares)), **processes)
    return with_answers(encoded, answers, max_length)


def with_answers(encoded: Data, answers: Sequence[str], max_length: int | None) -> Data:
    """Return the rows whose answers all have a token; the number of the others is logged.

    Raises:
        BadValue: no row is left.
    """
    return kept_rows(
        encoded,
        partial(has_answers, columns=token_columns(answers)),
        f"an answer has no token within max_length={max_length}",
        noun="pairs",
        none=(
            f"no pair of the dataset has two answers within max_length={max_length}: give rows, or "
            "a greater max_length"
        ),
    )


def check_shares(row: Row, names: Sequence[str]) -> Row:
    """Return the row; raise `BadValue` if a column of these names is no number from 0 to 1."""
    for name in names:
        if not (isinstance(row[name], int | float) and 0 <= row[name] <= 1):
            raise BadValue(f"{name} is {row[name]!r}: expected a number from 0 to 1")
    return row


def encode_answers(
    row: Row,
    tokenizer: Tokenizer,
    max_length: int | None,
    kept: str,
    answers: Sequence[str] = ANSWERS,
) -> dict[str, Sequence[int]]:
    """Return the token ids of a row's answers, and of the prompt before each.

    Raises:
        BadValue: see `with_prompt`.
    """
    pair = with_prompt(row, answers)
    ids = dict[str, Sequence[int]]()
    for name in answers:
        asked = pair.get(f"{name}_prompt") or pair["prompt"]
        parts = encode_answer({**pair, "prompt": asked, "completion": pair[name]}, tokenizer)
        ids[f"{name}_prompt_ids"], ids[f"{name}_ids"] = truncate(*parts, max_length, kept)
    return ids


def with_prompt(row: Row, answers: Sequence[str] = ANSWERS) -> Row:
    """Return a row with its prompt in a column of its own, see `split_prompt`.

    Raises:
        BadValue: chosen and rejected answers to a prompt are equal, or see `split_prompt`.
    """
    pair = row if "prompt" in row else {**row, **split_prompt(row, answers)}
    if pair["chosen"] == pair["rejected"] and not pair.get("rejected_prompt"):
        raise BadValue(
            f"chosen and rejected are both {pair['chosen']!r:.{SHOWN}} after the prompt "
            f"{pair['prompt']!r:.{SHOWN}}: expected two answers"
        )
    return pair


def encode_answer(row: Row, tokenizer: Tokenizer) -> tuple[Sequence[int], Sequence[int]]:
    """Return the token ids of the prompt of a row and of its completion, see `join_ids`."""
    prompt, full_text = pair_texts(row, tokenizer)
    plain = isinstance(row["prompt"], str)
    start = tokenizer(prompt, add_special_tokens=plain)["input_ids"]
    whole = join_ids(tokenizer, prompt, full_text, start, plain)
    begin = common_length(start, whole)
    return whole[:begin], whole[begin:]


def prompt_of(row: Row) -> Any:
    """Return the prompt of a row, or of a pair what both answers begin with; Any: text or turns."""
    return row["prompt"] if "prompt" in row else split_prompt(row)["prompt"]


def split_prompt(row: Row, answers: Sequence[str] = ANSWERS) -> Row:
    """Return prompt and answers of a row whose answers begin with the prompt.

    It is what chosen and rejected answer begin with; of texts, before a space.

    Raises:
        BadValue: another answer does not begin with it, or it has no message.
    """
    chosen, rejected = row["chosen"], row["rejected"]
    length = common_length(chosen, rejected)
    if not (length or isinstance(chosen, str)):
        raise BadValue(
            f"chosen and rejected begin with other messages, {chosen[:1]!r:.{SHOWN}} and "
            f"{rejected[:1]!r:.{SHOWN}}: expected one prompt, or a column 'prompt'"
        )
    if isinstance(chosen, str) and length and chosen[length - 1] == " ":
        length -= 1
    prompt = chosen[:length]
    for name in answers:
        if row[name][:length] != prompt:
            raise BadValue(
                f"{name}={row[name]!r} does not begin with {prompt!r}, as chosen and rejected do: "
                "give a column 'prompt'"
            )
    return {"prompt": prompt, **{name: row[name][length:] for name in answers}}


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


def token_columns(answers: Sequence[str]) -> list[str]:
    """Return the columns of token ids of answers and of the prompts before them."""
    return [f"{name}_{part}" for name in answers for part in ("prompt_ids", "ids")]


def has_answers(row: Row, columns: Sequence[str]) -> bool:
    """Return whether all answers of a row have a token, each after one of a prompt."""
    return all(row[name] for name in columns)
