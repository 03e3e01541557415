"""Preparation of fine-tuning datasets of any form as rows of token ids with labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset, IterableDataset
from numpy.typing import NDArray
from transformers.utils import logging

from core.bounded_templates import Tokenizer
from core.configs.sft import PACKINGS, TRUNCATIONS, SFTConfig
from core.data.best_fit import COLUMNS, LENGTHS, Data, pack_rows
from core.data.chatml import to_chatml
from core.data.conversations import Row
from core.data.dropped_rows import kept_rows
from core.data.sft import IGNORED, row_encoder
from core.errors import MissingColumn
from eval.errors import BadValue

IMAGES = {"image", "images"}
MASKS = {"assistant_masks", "completion_mask"}
SKIP = "skip_prepare_dataset"
logger = logging.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Preparation of a trainer's datasets, by the settings of the trainer.

    Attributes:
        args: the trainer's config.
        tokenizer: the model's tokenizer.
        formatting_func: function that writes a row as one text.
        own_collator: whether the caller brings a data collator.
    """

    args: SFTConfig
    tokenizer: Tokenizer
    formatting_func: Callable[[Row], str] | None = None
    own_collator: bool = False

    def rows(self, dataset: Data, *, packing: bool = False) -> Data:
        """Return a dataset as token rows; unchanged if `skip_prepare_dataset` is set.

        Raises:
            BadValue, MissingColumn: see `is_prepared`, `check_prepared` and `tokenize_rows`.
        """
        args = self.args
        if self.is_prepared():
            return self.check_prepared(dataset, packing)
        return tokenize_rows(
            self.apply_formatting(dataset),
            self.tokenizer,
            text_field=args.dataset_text_field,
            completion_only=args.completion_only_loss,
            assistant_only=args.assistant_only_loss,
            mask_outputs=args.mask_tool_outputs,
            max_length=args.max_length,
            truncation=args.truncation_mode,
            packing=args.packing_strategy if packing else None,
            workers=args.dataset_num_proc,
        )

    def is_prepared(self) -> bool:
        """Return whether `dataset_kwargs` says that the rows are prepared already.

        Raises:
            BadValue: `dataset_kwargs` has another key.
        """
        keywords = self.args.dataset_kwargs
        options = keywords if isinstance(keywords, Mapping) else {}
        for key in set(options) - {SKIP}:
            raise BadValue(f"dataset_kwargs[{key!r}]: expected no key but {SKIP!r}")
        return bool(options.get(SKIP))

    def check_prepared(self, dataset: Data, packing: bool) -> Data:
        """Return a prepared dataset unchanged, after checking it against the settings.

        Raises:
            BadValue: a setting would need preparation, or masks would be ignored.
            MissingColumn: the dataset has no `input_ids`.
        """
        args, columns = self.args, set(next(iter(require_dataset(dataset)), {}))
        settings = {
            "formatting_func": self.formatting_func is not None,
            "assistant_only_loss": args.assistant_only_loss,
            "mask_tool_outputs": args.mask_tool_outputs,
            "completion_only_loss": args.completion_only_loss,
            "packing": packing and LENGTHS not in columns,
        }
        for name in (name for name, value in settings.items() if value):
            raise BadValue(f"{name} is set, but {SKIP} leaves the dataset as it is: leave one out")
        if self.own_collator:
            return dataset
        if "input_ids" not in columns:
            raise MissingColumn("the dataset", ["input_ids"], columns, f"{SKIP} leaves it so")
        if "labels" not in columns and columns & MASKS:
            raise BadValue(
                f"{SKIP} leaves {' and '.join(sorted(columns & MASKS))} unread. Add a 'labels' "
                "column, with -100 where nothing is trained on"
            )
        return dataset

    def apply_formatting(self, dataset: Data) -> Data:
        """Apply the formatting function to each row; without one, return the dataset unchanged.

        Raises:
            BadValue: the dataset holds token ids, or the text would hide the completion to
                train on.
        """
        write, args = self.formatting_func, self.args
        if write is None:
            return dataset
        columns = column_names(dataset)
        if "input_ids" in columns:
            raise BadValue("formatting_func is set, but the dataset holds token ids: leave it out")
        pairs = {"prompt", "completion"} <= columns
        if args.completion_only_loss or (pairs and args.completion_only_loss is None):
            raise BadValue(
                "formatting_func makes one text of a row, which has no completion to train on "
                "alone: set completion_only_loss=False, or leave formatting_func out"
            )
        field = args.dataset_text_field
        return dataset.map(lambda row: {field: write(row)}, remove_columns=sorted(columns))


def tokenize_rows(
    dataset: Data,
    tokenizer: Tokenizer,
    *,
    text_field: str = "text",
    completion_only: bool | None = None,
    assistant_only: bool = False,
    mask_outputs: bool = False,
    max_length: int | None = None,
    truncation: str = "keep_start",
    packing: str | None = None,
    workers: int | None = None,
) -> Data:
    """Convert rows of `text`, `messages`, or `prompt` and `completion` to `input_ids` and `labels`.

    Rows that have `input_ids` keep them, see `encode_ids`; packed rows are returned unchanged.
    Rows of an empty text, conversation or completion are dropped, and so are rows without a label.

    Args:
        dataset: a Dataset or IterableDataset.
        tokenizer: the model's tokenizer.
        text_field: column of plain texts.
        completion_only: whether prompts get no labels; by default for rows that have a prompt.
        assistant_only: whether only assistant messages get labels.
        mask_outputs: whether what programs print gets no labels, see `printed_tokens`.
        max_length: largest number of tokens in a row.
        truncation: which tokens of a longer row are kept, a name of `TRUNCATIONS`.
        packing: packing strategy; None truncates rows instead, see `to_length`.
        workers: number of processes.

    Raises:
        BadValue: the value is no dataset, has images, or has no token to train on.
        MissingColumn: the dataset has none of these columns.
    """
    if LENGTHS in column_names(dataset):
        return dataset
    chatml: Data = to_chatml(dataset)
    encode = row_encoder(
        column_names(chatml),
        tokenizer,
        text_field=text_field,
        completion_only=completion_only,
        assistant_only=assistant_only,
        mask_outputs=mask_outputs,
    )
    processes: dict[str, object] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    encoded = written_rows(chatml.with_format(None), text_field).map(encode, **processes)
    return require_labels(
        to_length(encoded, max_length, truncation, packing, processes), max_length
    )


def written_rows(rows: Data, text_field: str) -> Data:
    """Return the rows that have a text, a message or a completion; the others have only an end.

    Raises:
        BadValue: all rows are empty.
    """
    columns = column_names(rows)
    pairs = "completion" if "prompt" in columns else None
    name = next(n for n in ("input_ids", pairs, "messages", text_field) if n in columns)
    return kept_rows(
        rows,
        lambda row: row[name] not in ("", []),
        f"their {name} is empty",
        none=f"no row of the dataset has anything in {name!r}: give rows that have",
    )


def to_length(
    rows: Data,
    max_length: int | None,
    truncation: str,
    packing: str | None,
    processes: Mapping[str, object],
) -> Data:
    """Pack rows by a strategy, see `pack_rows`, or truncate each to `max_length` tokens.

    Truncated rows without a label are dropped. Of a dataset that is not streamed, the rows without
    a label and the pieces without their prompt are counted in a warning.
    """
    if packing is not None:
        packed = pack_rows(rows, max_length, packing, **processes)
        warn_of_cuts(rows, packed, max_length, splits=PACKINGS[packing].splits)
        return packed
    if max_length is not None:
        span = TRUNCATIONS[truncation].kept(max_length)
        rows = rows.map(lambda row: {key: row[key][span] for key in COLUMNS}, **processes)
    return kept_rows(
        rows,
        is_trained_on,
        f"they have no token to train on within max_length={max_length}",
    )


def warn_of_cuts(rows: Data, packed: Data, max_length: int | None, *, splits: bool) -> None:
    """Warn of packed rows without a label and of pieces without their prompt; not of streams.

    Args:
        rows: the documents.
        packed: the rows that they are packed into.
        max_length: the width of these rows.
        splits: whether documents longer than a row become several pieces.
    """
    if not (isinstance(rows, Dataset) and isinstance(packed, Dataset) and max_length):
        return
    unlabelled = sum(not labelled.any() for labelled in labelled_tokens(packed))
    if unlabelled:
        logger.warning(
            f"{unlabelled} of {len(packed)} packed rows have no token to train on within "
            f"max_length={max_length}"
        )
    if not splits:
        return
    lost = total = 0
    for labelled in labelled_tokens(rows):
        total += -(-len(labelled) // max_length)
        lost += pieces_without_prompt(labelled, max_length)
    if lost:
        logger.warning(
            f"{lost} of {total} pieces of documents are trained on without their prompt, as they "
            f"are split at max_length={max_length}: set a greater max_length, or a "
            "packing_strategy that truncates them"
        )


def labelled_tokens(rows: Dataset) -> Iterator[NDArray[np.bool_]]:
    """Yield for each row which of its tokens have a label; a thousand rows are in memory."""
    table: Any  # of Arrow, whose types are partly unknown
    for table in rows.select_columns("labels").with_format("arrow").iter(1000):
        column = table["labels"].combine_chunks()
        labelled = column.flatten().to_numpy(zero_copy_only=False) != IGNORED
        yield from np.split(labelled, np.cumsum(column.value_lengths())[:-1])


def pieces_without_prompt(labelled: NDArray[np.bool_], width: int) -> int:
    """Return how many labelled pieces of a document do not begin with its prompt.

    A document has a prompt if its first token has no label. It is split every `width` tokens.

    Args:
        labelled: Which tokens have a label.
        width: Length of a piece.
    """
    if not len(labelled) or labelled[0]:
        return 0
    starts = range(width, len(labelled), width)
    return sum(bool(labelled[start : start + width].any()) for start in starts)


def is_trained_on(row: Mapping[str, Sequence[int]]) -> bool:
    """Return whether any token of a row has a label."""
    return any(label != IGNORED for label in row["labels"])


def require_labels(rows: Data, max_length: int | None) -> Data:
    """Return the rows unchanged.

    Raises:
        BadValue: no token of any row has a label.
    """
    if not any(map(is_trained_on, rows)):
        raise BadValue(
            "no row of the dataset has a token to train on within "
            f"max_length={max_length}: give rows, or a greater max_length"
        )
    return rows


def require_dataset(dataset: Data) -> Data:
    """Return the dataset unchanged.

    Raises:
        BadValue: it is neither a Dataset nor an IterableDataset.
    """
    if not isinstance(dataset, Dataset | IterableDataset):
        raise BadValue(
            f"the dataset is a {type(dataset).__name__}: expected a datasets.Dataset or "
            "datasets.IterableDataset"
        )
    return dataset


def column_names(dataset: Data) -> set[str]:
    """Return the column names of a dataset that is to be prepared.

    Raises:
        BadValue: the value is no dataset, has images, or computes its rows by `with_transform`.
    """
    if isinstance(require_dataset(dataset), Dataset) and dataset.format["type"] == "custom":
        raise BadValue(
            "the dataset makes its rows by Dataset.with_transform(): write them with map(), or set "
            f"dataset_kwargs={{{SKIP!r}: True}} and let it make trainer-ready token ids"
        )
    columns = set(dataset.column_names or next(iter(dataset), {}))
    if columns & IMAGES:
        raise BadValue(
            "the dataset has images: vision-related data needs a vision-language model, and those "
            "are not supported; drop the column"
        )
    return columns
