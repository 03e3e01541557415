"""A fine-tuning dataset in any of its forms as rows of token ids with labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from datasets import Dataset, IterableDataset

from core.configs.sft import SFTConfig
from core.data.best_fit import COLUMNS, LENGTHS, pack_rows
from core.data.chatml import in_chatml
from core.data.conversations import Tokenizer
from core.data.sft import IGNORED, row_encoder
from core.errors import MissingColumn
from eval.errors import BadValue

Data: TypeAlias = Any  # Any: a Dataset or an IterableDataset, which share methods but no class
IMAGES = {"image", "images"}
MASKS = {"assistant_masks", "completion_mask"}
SKIP = "skip_prepare_dataset"


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How a trainer's datasets become rows of token ids: by its settings at that time."""

    args: SFTConfig
    tokenizer: Tokenizer
    formatting_func: Callable[[Any], str] | None = None  # Any: a row
    own_collator: bool = False

    def rows(self, dataset: Data, *, packing: bool = False) -> Data:
        """The rows of one dataset; as they are if `skip_prepare_dataset` is set."""
        args = self.args
        if self.skipped():
            return self.ready(dataset, packing)
        return tokenize_rows(
            self.formatted(dataset),
            self.tokenizer,
            text_field=args.dataset_text_field,
            completion_only=args.completion_only_loss,
            assistant_only=args.assistant_only_loss,
            max_length=args.max_length,
            packing=args.packing_strategy if packing else None,
            workers=args.dataset_num_proc,
        )

    def skipped(self) -> bool:
        """Whether the rows are prepared already.

        Raises:
            BadValue: `dataset_kwargs` has another key.
        """
        options: Any = self.args.dataset_kwargs or {}  # Any: parsed from its string
        for key in set(options) - {SKIP}:
            raise BadValue(f"dataset_kwargs[{key!r}]: expected no key but {SKIP!r}")
        return bool(options.get(SKIP))

    def ready(self, dataset: Data, packing: bool) -> Data:
        """A dataset that is not prepared, if nothing that is set asks for it.

        Raises:
            BadValue: something does, or masks would be passed over.
            MissingColumn: the rows are no token ids.
        """
        args, columns = self.args, set(next(iter(checked(dataset)), {}))
        asked = {
            "formatting_func": self.formatting_func is not None,
            "assistant_only_loss": args.assistant_only_loss,
            "completion_only_loss": args.completion_only_loss,
            "packing": packing and LENGTHS not in columns,
        }
        for name in (name for name, value in asked.items() if value):
            raise BadValue(f"{name} is set, but {SKIP} leaves the dataset as it is: leave one out")
        if self.own_collator:
            return dataset
        if "input_ids" not in columns:
            raise MissingColumn("the dataset", ["input_ids"], columns, f"{SKIP} leaves it so")
        if "labels" not in columns and columns & MASKS:
            raise BadValue(
                f"{SKIP} leaves {' and '.join(sorted(columns & MASKS))} unread: give a column "
                "'labels', with -100 where nothing is trained on"
            )
        return dataset

    def formatted(self, dataset: Data) -> Data:
        """One text of each row, as the formatting function writes it.

        Raises:
            BadValue: it would hide which tokens are the completion's or the assistant's.
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
    max_length: int | None = None,
    packing: str | None = None,
    workers: int | None = None,
) -> Data:
    """`input_ids` and `labels` for every row of `text`, `messages`, or `prompt` and `completion`.

    Labels of the prompt are ignored if `completion_only`, by default exactly for rows that have
    one. Rows are cut or packed, see `to_length`. Rows that have `input_ids` keep them, see
    `encode_ids`, and packed ones stay as they are.

    Raises:
        BadValue: it is no dataset, has images, or no row has a token to train on.
        MissingColumn: the dataset has none of these columns.
    """
    if LENGTHS in column_names(dataset):
        return dataset
    named: Data = in_chatml(dataset)
    encode = row_encoder(
        column_names(named),
        tokenizer,
        text_field=text_field,
        completion_only=completion_only,
        assistant_only=assistant_only,
    )
    processes: dict[str, Any] = {"num_proc": workers} if isinstance(dataset, Dataset) else {}
    encoded = named.with_format(None).map(encode, **processes)
    rows = to_length(encoded, max_length, packing, processes)
    if not any(map(is_trained_on, rows)):
        raise BadValue(
            "no row of the dataset has a token to train on within "
            f"max_length={max_length}: give rows, or a greater max_length"
        )
    return rows


def to_length(
    rows: Data,
    max_length: int | None,
    packing: str | None,
    processes: Mapping[str, Any],  # Any: keywords of `map`
) -> Data:
    """Rows packed by that strategy, see `pack_rows`, or each row's first `max_length` tokens.

    A row without a label left is dropped.
    """
    if packing is not None:
        return pack_rows(rows, max_length, packing, **processes)
    if max_length is None:
        return rows
    cut = rows.map(lambda row: {key: row[key][:max_length] for key in COLUMNS}, **processes)
    return cut.filter(is_trained_on)


def is_trained_on(row: Mapping[str, Sequence[int]]) -> bool:
    """Whether any token of a row is."""
    return any(label != IGNORED for label in row["labels"])


def checked(dataset: Data) -> Data:
    """The dataset itself, if it is one.

    Raises:
        BadValue: it is none of the datasets library.
    """
    if not isinstance(dataset, Dataset | IterableDataset):
        raise BadValue(
            f"the dataset is a {type(dataset).__name__}: expected a datasets.Dataset or "
            "datasets.IterableDataset"
        )
    return dataset


def column_names(dataset: Data) -> set[str]:
    """The columns of a dataset that is to be prepared.

    Raises:
        BadValue: it is no dataset, has images, or makes its rows on the fly.
    """
    if isinstance(checked(dataset), Dataset) and dataset.format["type"] == "custom":
        raise BadValue(
            "the dataset makes its rows by with_transform(): write them with map() instead, or let "
            f"it make token ids and set dataset_kwargs={{{SKIP!r}: True}}"
        )
    columns = set(dataset.column_names or next(iter(dataset), {}))
    if columns & IMAGES:
        raise BadValue(
            "the dataset has images: models of images are not supported, drop the column"
        )
    return columns
