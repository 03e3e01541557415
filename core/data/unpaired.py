"""Preparation of labelled answers: rows of prompt and completion as token ids, with a label."""

from collections.abc import Mapping, Sequence

from datasets import Dataset
from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.data.best_fit import Data
from core.data.chatml import to_chatml
from core.data.conversations import Row
from core.data.dropped_rows import kept_rows
from core.data.pairs import ANSWERS, encode_answer, with_prompt
from core.data.preparation import column_names
from core.data.sft import pair_texts
from core.errors import MissingColumn
from eval.errors import BadValue

LABELLED = ("prompt", "completion", "label")
OF_TEMPLATES = ("tools", "chat_template_kwargs")  # columns that chat templates read
MISMATCHED = "KL_completion_ids"
TOKENS = ("prompt_ids", "completion_ids", "label")
PROMPT_TEXT = "prompt_text"
logger = logging.get_logger(__name__)


def tokenize_unpaired(
    dataset: Data,
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    block: int | None = None,
    seed: int = 0,
    with_text: bool = False,
    workers: int | None = None,
) -> Data:
    """Convert rows of `prompt`, `completion` and `label` to token ids of prompt and completion.

    Rows of `chosen` and `rejected` are two labelled answers each, in an order drawn from `seed`.
    Rows of which the prompt fills `max_length` are dropped, and their number is logged.
    Completions are not cut.

    Args:
        dataset: a Dataset or IterableDataset of texts or conversations.
        tokenizer: the model's tokenizer.
        max_length: largest number of tokens of a prompt with a completion.
        block: number of rows among which completions change places, see `Mismatches`; None for
            no mismatched completions.
        seed: seed of the order of answers that were pairs.
        with_text: whether rows keep the text of the prompt, as the model reads it.
        workers: number of processes.

    Returns:
        Rows of `prompt_ids`, `completion_ids`, `label` and, with `block`, the completion of another
        row.

    Raises:
        BadValue: the value is no dataset or has images, a label is no boolean, a labelled
            completion is empty, both answers of a pair are equal, or no row is left.
        MissingColumn: a column is missing.
    """
    rows = labelled_rows(dataset, seed)
    columns = column_names(rows)
    processes: dict[str, object] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    encoded = rows.map(
        encode_labelled,
        fn_kwargs={
            "tokenizer": tokenizer,
            "with_text": with_text,
            "may_be_empty": column_names(dataset) >= {*ANSWERS},
        },
        remove_columns=sorted(columns - {"label"}),
        **processes,
    )
    answers = require_rows(encoded, max_length)
    return answers if block is None else answers.map(Mismatches(), batched=True, batch_size=block)


def labelled_rows(dataset: Data, seed: int) -> Data:
    """Return a dataset of labelled answers in ChatML, or two answers for each pair of a dataset.

    Raises:
        BadValue: the value is no dataset or has images, or both answers of a pair are equal.
        MissingColumn: a column is missing.
    """
    columns = column_names(dataset)
    rows: Data = to_chatml(dataset).with_format(None)
    if columns >= {*ANSWERS}:
        split = rows.map(split_pairs, batched=True, remove_columns=sorted(columns))
        return split.shuffle(seed=seed)
    if missing := [name for name in LABELLED if name not in columns]:
        advice = "a labelled answer needs them, a pair 'chosen' and 'rejected'"
        raise MissingColumn("the dataset", missing, columns, advice)
    return rows


def split_pairs(columns: Mapping[str, Sequence[object]]) -> Mapping[str, Sequence[object]]:
    """Return the columns of two labelled answers for each pair of a batch.

    Raises:
        BadValue: both answers of a pair are equal.
    """
    rows = (
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    )
    answers = [(pair, name) for pair in map(with_prompt, rows) for name in ANSWERS]
    kept = ["prompt", *columns.keys() & {*OF_TEMPLATES}]
    return {
        **{column: [pair[column] for pair, _ in answers] for column in kept},
        "completion": [pair[name] for pair, name in answers],
        "label": [name == "chosen" for _, name in answers],
    }


def encode_labelled(
    row: Row, tokenizer: Tokenizer, *, with_text: bool = False, may_be_empty: bool = False
) -> Row:
    """Return the token ids of a row, its label and, if asked, the text of its prompt.

    An answer of a pair may be empty, as one that a model ended at once.

    Raises:
        BadValue: the label is no boolean, or the completion is empty and must not be.
    """
    label, completion = row["label"], row["completion"]
    if not isinstance(label, bool):
        raise BadValue(f"label={label!r} in the dataset: expected True or False")
    if is_empty(completion) and not may_be_empty:
        raise BadValue(f"completion={completion!r} in the dataset: expected an answer")
    prompt_ids, completion_ids = encode_answer(row, tokenizer)
    text = {PROMPT_TEXT: pair_texts(row, tokenizer)[0]} if with_text else {}
    return {"prompt_ids": prompt_ids, "completion_ids": completion_ids, "label": label, **text}


def is_empty(completion: object) -> bool:
    """Return whether a completion has no text: an empty one, or messages without content."""
    if not isinstance(completion, list):
        return completion == ""
    return not any(turn.get("content") or turn.get("tool_calls") for turn in completion)


def require_rows(encoded: Data, max_length: int | None) -> Data:
    """Return the rows with a token of prompt and completion within `max_length`.

    Raises:
        BadValue: there are none.
    """

    def has_answer(row: Row) -> bool:
        room = len(row["prompt_ids"]) + 1 if max_length is None else max_length
        return bool(row["completion_ids"]) and 0 < len(row["prompt_ids"]) < room

    return kept_rows(
        encoded,
        has_answer,
        f"they have no token within max_length={max_length}",
        noun="answers",
        none=(
            f"no row of the dataset has an answer within max_length={max_length}: give rows, or a "
            "greater max_length"
        ),
    )


class Mismatches:
    """Function for blocks of rows that gives each the completion of another row of the block.

    Completions move on by one row, the last one to the first row. A block of a single row takes
    the last completion of the block before.

    Raises:
        BadValue: there is only one row.
    """

    def __init__(self) -> None:
        self.before: Sequence[int] | None = None

    def __call__(self, rows: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, object]:
        """Return the column of mismatched completions of a block."""
        completions = list(rows["completion_ids"])
        first = completions[-1] if len(completions) > 1 else self.before
        if first is None:
            raise BadValue(
                "the dataset has one row, and a completion is compared with that of another "
                "prompt: give at least 2 rows"
            )
        self.before = completions[-1]
        return {MISMATCHED: [first, *completions[:-1]]}
