"""Rows of a fine-tuning dataset as token ids with the tokens that are trained on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from datasets import Dataset
from torch import Tensor

from core.data.chatml import in_chatml
from core.errors import MissingColumn
from eval.errors import BadValue

IGNORED = -100  # the label of a token that is not trained on
TOKENIZED = ("input_ids", "labels")
Row = Mapping[str, Any]  # Any: text, or a conversation
Tokenizer: TypeAlias = Any  # Any: a PreTrainedTokenizerBase, whose declared types are unions


def tokenize_rows(
    dataset: Dataset,
    tokenizer: Tokenizer,
    *,
    text_field: str = "text",
    completion_only: bool | None = None,
    max_length: int | None = None,
    workers: int | None = None,
) -> Dataset:
    """`input_ids` and `labels` for every row of `text`, `messages`, or `prompt` and `completion`.

    Labels of the prompt are ignored if `completion_only`, by default exactly for rows that have
    one. Rows keep their first `max_length` tokens, and those without a label left are dropped.
    Rows that have `input_ids` keep them; see `encode_ids`.

    Raises:
        BadValue: it is no `Dataset`, or no row has a token to train on.
        MissingColumn: the dataset has none of these columns.
    """
    if not isinstance(dataset, Dataset):
        raise BadValue(
            f"the dataset is a {type(dataset).__name__}: expected a datasets.Dataset (streaming "
            "ones are not supported)"
        )
    dataset = in_chatml(dataset)
    columns = set(dataset.column_names)
    if "input_ids" in columns:
        encode = lambda row: encode_ids(row, completion_only is True)  # noqa: E731 - the row's reader
    elif {"prompt", "completion"} <= columns:
        encode = lambda row: encode_pair(row, tokenizer, completion_only is not False)  # noqa: E731
    elif "messages" in columns:
        encode = lambda row: encode_turns(row, tokenizer)  # noqa: E731
    elif text_field in columns:
        encode = lambda row: encode_text(row[text_field], tokenizer)  # noqa: E731
    else:
        wanted = (text_field, "messages", "prompt")
        raise MissingColumn("the dataset", wanted, columns, "one of them is needed")
    rows = dataset.map(encode, remove_columns=dataset.column_names, num_proc=workers)
    if max_length is not None:
        cut = rows.map(lambda row: {key: row[key][:max_length] for key in TOKENIZED})
        rows = cut.filter(lambda row: any(label != IGNORED for label in row["labels"]))
    if not len(rows):
        raise BadValue(
            f"the dataset's {len(dataset)} rows have no token to train on within "
            f"max_length={max_length}: give rows, or a greater max_length"
        )
    return rows


def encode_ids(row: Row, completion_only: bool) -> Row:
    """Token ids as they are, with their labels.

    Without labels all tokens are trained on that `assistant_masks` keeps, if there, and
    `completion_mask` too if `completion_only`.
    """
    ids = list(row["input_ids"])
    if "labels" in row:
        return {"input_ids": ids, "labels": list(row["labels"])}
    names = ("assistant_masks", "completion_mask") if completion_only else ("assistant_masks",)
    masks = [row[name] for name in names if name in row]
    kept = map(all, zip(*masks, strict=True)) if masks else [True] * len(ids)
    labels = [token if keep else IGNORED for token, keep in zip(ids, kept, strict=True)]
    return {"input_ids": ids, "labels": labels}


def encode_pair(row: Row, tokenizer: Tokenizer, completion_only: bool) -> Row:
    """Prompt and completion, standard or conversational, joined.

    The prompt's tokens are those that generation reads, merged with none of the completion's. Where
    the template ends a lone prompt otherwise, the completion begins where the two differ.
    """
    plain = isinstance(row["prompt"], str)
    if plain:
        prompt, whole = row["prompt"], row["prompt"] + ended(row["completion"], tokenizer)
    else:
        prompt = chat(tokenizer, row, row["prompt"], add_generation_prompt=True)
        whole = chat(tokenizer, row, [*row["prompt"], *row["completion"]])
    start = tokenizer(prompt, add_special_tokens=plain)["input_ids"]
    if whole.startswith(prompt):
        rest = whole.removeprefix(prompt)
        ids = start + tokenizer(rest, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(whole, add_special_tokens=plain)["input_ids"]
    same = [own == joined for own, joined in zip(start, ids, strict=False)]
    shared = [*same, False].index(False) if completion_only else 0
    return {"input_ids": ids, "labels": [IGNORED] * shared + ids[shared:]}


def encode_text(text: str, tokenizer: Tokenizer) -> Row:
    """All tokens of a text, trained on, with the end token."""
    ids = tokenizer(ended(text, tokenizer))["input_ids"]
    return {"input_ids": ids, "labels": list(ids)}


def encode_turns(row: Row, tokenizer: Tokenizer) -> Row:
    """All tokens of a conversation, trained on."""
    text = chat(tokenizer, row, row["messages"])
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]  # the template writes its own
    return {"input_ids": ids, "labels": list(ids)}


def ended(text: str, tokenizer: Tokenizer) -> str:
    """Return a text with the end token, which it may have already.

    Raises:
        BadValue: it is no text.
    """
    if not isinstance(text, str):
        raise BadValue(f"{text!r} in the dataset: expected a text, found {type(text).__name__}")
    end = tokenizer.eos_token
    return text if text.endswith(end) else text + end


def chat(tokenizer: Tokenizer, row: Row, messages: Sequence[Row], **options: bool) -> str:
    """A conversation through the chat template, with the row's `tools` and template keywords."""
    given = row.get("tools")
    tools = json.loads(given) if isinstance(given, str) else given
    keywords = {**(row.get("chat_template_kwargs") or {}), **options}
    return tokenizer.apply_chat_template(list(messages), tools=tools, tokenize=False, **keywords)


@dataclass(frozen=True)
class PadRight:
    """Collates rows to the longest of them, padded on the right."""

    pad_token_id: int
    multiple: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """`input_ids`, `labels` and `attention_mask`, all (B, T)."""
        width = max(len(row["input_ids"]) for row in rows)
        width = -(-width // self.multiple) * self.multiple if self.multiple else width
        fill = {"input_ids": self.pad_token_id, "labels": IGNORED}
        batch = {
            key: torch.tensor([[*row[key], *[fill[key]] * (width - len(row[key]))] for row in rows])
            for key in TOKENIZED
        }
        lengths = torch.tensor([len(row["input_ids"]) for row in rows])
        batch["attention_mask"] = (torch.arange(width) < lengths[:, None]).long()
        return batch
