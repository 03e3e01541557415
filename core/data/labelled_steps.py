"""Preparation of solutions whose steps are labelled: token ids, and labels at the ends of steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from datasets import Dataset

from core.bounded_templates import Tokenizer, apply_template
from core.data.best_fit import Data
from core.data.conversations import Row
from core.data.dropped_rows import kept_rows
from core.data.preparation import column_names, is_trained_on
from core.data.sft import IGNORED
from core.errors import MissingColumn
from eval.errors import BadValue

RAW = ("prompt", "completions", "labels")
ENCODED = ("input_ids", "labels")
KINDS = (0, 1)  # labels of a wrong and of a right step


@dataclass(frozen=True, kw_only=True)
class StepEncoder:
    """Function that converts a row of `prompt`, `completions` and `labels` to token ids and labels.

    A prompt of messages becomes the text of the tokenizer's chat template, as a rater reads it.

    Attributes:
        tokenizer: the model's tokenizer.
        separator: text that ends each step.
        max_completion_length: largest number of tokens of all steps; None for any.
        max_length: largest number of tokens of prompt and steps; None for any.
        last_only: whether the last step alone is labelled.
    """

    tokenizer: Tokenizer
    separator: str
    max_completion_length: int | None = None
    max_length: int | None = None
    last_only: bool = False

    def rows(self, dataset: Data, workers: int | None = None) -> Data:
        """Return a dataset as rows of `input_ids` and `labels`, see `encoded_rows`."""
        return encoded_rows(dataset, self, RAW, f"max_length={self.max_length}", workers)

    def __call__(self, row: Row, index: int) -> dict[str, list[int]]:
        """Return the token ids and labels of a row, with `IGNORED` where no step ends.

        Raises:
            BadValue: there is not one label for each step, a label is none of `KINDS`, a step is no
                text or has no token, the separator becomes a token with the next step, or the first
                token of the row has a label.
        """
        place = f"row {index} of the dataset"
        if "input_ids" in row:
            ids, labels = check_encoded(row, place)
        else:
            ids, labels = self.encode({**row, "prompt": self.text_of(row["prompt"])}, place)
        if labels[:1] != [IGNORED]:
            raise BadValue(f"{place}: expected a token before the one that ends the first step")
        return named_tokens(ids[: self.max_length], labels[: self.max_length])

    def text_of(self, prompt: object) -> object:
        """Return a prompt, or the text of its messages."""
        if not isinstance(prompt, list):
            return prompt
        as_text = {"tokenize": False, "add_generation_prompt": True}
        return apply_template(self.tokenizer, cast(list[object], prompt), **as_text)

    def encode(self, row: Row, place: str) -> tuple[list[int], list[int]]:
        """Return the token ids and labels of a row of texts, without `max_length`."""
        check_steps(row, place)
        self.check_separator(row, place)
        begin = self.tokenizer.bos_token_id
        prompt = [*([] if begin is None else [begin]), *self.ids_of(row["prompt"])]
        steps, labels = list[int](), list[int]()
        last = len(row["labels"]) - 1
        for number, (step, label) in enumerate(zip(row["completions"], row["labels"], strict=True)):
            tokens = [*self.ids_of(step), *self.ids_of(self.separator)]
            if not tokens:
                raise BadValue(f"{place}: step {number} has no token: leave it out")
            is_read = number == last or not self.last_only
            steps += tokens
            labels += [*[IGNORED] * (len(tokens) - 1), int(label) if is_read else IGNORED]
        kept = slice(self.max_completion_length)
        return [*prompt, *steps[kept]], [*[IGNORED] * len(prompt), *labels[kept]]

    def ids_of(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens."""
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def check_separator(self, row: Row, place: str) -> None:
        """Refuse a separator that becomes a token with the beginning of a next step.

        A model that reads the whole text would have no token that ends the step. Tokenizers
        without offsets are not checked.

        Raises:
            BadValue: there is such a step.
        """
        if not self.tokenizer.is_fast:
            return
        parts = [f"{step}{self.separator}" for step in row["completions"]]
        text = "".join([row["prompt"], *parts])
        spans = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ends = list(accumulate(map(len, parts), initial=len(row["prompt"])))[1:-1]
        for number, end in enumerate(ends, start=1):
            if any(start < end < stop for start, stop in spans["offset_mapping"]):
                raise BadValue(
                    f"{place}: step_separator={self.separator!r} and the beginning of "
                    f"{row['completions'][number]!r} are one token, in which no step ends: choose "
                    "another separator"
                )


def named_tokens(ids: list[int], labels: list[int]) -> dict[str, list[int]]:
    """Return token ids and labels as `token_input_ids` and `token_labels`.

    The new columns have other names than the old ones, so that labels do not become the booleans
    that these may be.
    """
    return dict(zip((f"token_{name}" for name in ENCODED), (ids, labels), strict=True))


def encoded_rows(
    dataset: Data,
    encode: Callable[[Row, int], Mapping[str, list[int]]],
    raw: Sequence[str],
    lengths: str,
    workers: int | None = None,
) -> Data:
    """Return a dataset as rows of `input_ids` and `labels`.

    Rows that have `input_ids` keep them. Rows without a label within the lengths are dropped, and
    their number is logged.

    Args:
        dataset: The dataset.
        encode: Returns the `named_tokens` of a row at a place of the dataset.
        raw: The columns of a dataset without `input_ids`.
        lengths: The lengths, for messages.
        workers: Number of processes.

    Raises:
        BadValue: the value is no dataset or has images, a row is not as `encode` expects it, or no
            row is left.
        MissingColumn: a column is missing.
    """
    columns = column_names(dataset)
    expected = ENCODED if "input_ids" in columns else raw
    if missing := [name for name in expected if name not in columns]:
        raise MissingColumn("the dataset", missing, columns, "each solution needs its labels")
    options: dict[str, Any] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    named = dataset.with_format(None).map(
        encode,
        with_indices=True,
        remove_columns=sorted(columns),
        **options,  # Any: an IterableDataset takes fewer
    )
    return kept_rows(
        named.rename_columns({f"token_{name}": name for name in ENCODED}),
        is_trained_on,
        f"no step ends within {lengths}",
        none=(f"no step of the dataset ends within {lengths}: give rows, or a greater max_length"),
    )


def check_steps(row: Row, place: str) -> None:
    """Raise `BadValue` unless a row has a text as prompt, and a text and a label for each step."""
    prompt, steps, labels = (row[name] for name in RAW)
    if not isinstance(prompt, str):
        raise BadValue(f"{place}: prompt={prompt!r}, expected a text or messages")
    if not steps or not all(isinstance(step, str) for step in steps):
        raise BadValue(f"{place}: completions={steps!r}, expected a list of texts, one a step")
    if labels is None or len(labels) != len(steps):
        count = "no" if labels is None else len(labels)
        raise BadValue(f"{place}: {count} labels for {len(steps)} steps, expected one a step")
    check_kinds(labels, place)


def check_encoded(row: Row, place: str) -> tuple[list[int], list[int]]:
    """Return the token ids and labels of a row that has them.

    Raises:
        BadValue: there is not one label for each token, or a label is neither of `KINDS` nor
            `IGNORED`.
    """
    ids, labels = list(row["input_ids"]), list(row["labels"])
    if len(labels) != len(ids):
        raise BadValue(f"{place}: {len(labels)} labels for {len(ids)} tokens, expected one a token")
    check_kinds([label for label in labels if label != IGNORED], place)
    return ids, labels


def check_kinds(labels: Sequence[object], place: str, noun: str = "step") -> None:
    """Raise `BadValue` if a label, that of a step or another `noun`, is none of `KINDS`."""
    for label in labels:
        if label not in KINDS:
            raise BadValue(
                f"{place}: label {label!r} of a {noun}, expected True or False, or 1 or 0"
            )


def with_both_kinds(rows: Data) -> Data:
    """Return encoded rows; raise `BadValue` if all labels of a Dataset are of one kind."""
    if isinstance(rows, Dataset):
        kinds = {label for labels in rows["labels"] for label in labels} - {IGNORED}
        if len(kinds) < len(KINDS):
            raise BadValue(
                f"all labels of train_dataset are {kinds.pop()}: expected right and wrong steps, "
                "of which a model learns to tell one from the other"
            )
    return rows
