"""Completions of the data, in the form of a rollout that nobody sampled."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from datasets import Dataset, IterableDataset
from transformers import PreTrainedTokenizerBase

from core.collect.generation import Generated
from core.data.conversations import Row
from core.data.sft import IGNORED, encode_pair
from core.data.streams import columns_of
from core.distillation.required_columns import Datasets, check_column
from core.trainers.prompts import Rows
from eval.errors import BadValue

KEYWORDS = "chat_template_kwargs"  # column of a row's own


def pairs_of_messages(dataset: Any) -> Any:  # Any: what a trainer is given, which is checked later
    """Return datasets with columns `prompt` and `completion` in place of `messages`."""
    if isinstance(dataset, dict):
        return {name: pairs_of_messages(rows) for name, rows in dataset.items()}
    columns = columns_of(dataset) if isinstance(dataset, Dataset | IterableDataset) else []
    if "messages" not in columns or "completion" in columns:
        return dataset
    return dataset.with_format(None).map(split_answer, remove_columns=["messages"])


def split_answer(row: Row) -> Row:
    """Return a conversation as prompt and completion, its last message if that is an answer."""
    messages = row["messages"]
    if messages and messages[-1]["role"] == "assistant":
        return {"prompt": messages[:-1], "completion": messages[-1:]}
    return {"prompt": messages, "completion": None}


def check_completions(
    datasets: Datasets, reason: str = "lmbda below 1", advice: str = "lmbda=1"
) -> None:
    """Refuse data without completions, see `check_column`.

    Args:
        datasets: The data.
        reason: The setting with which completions are read.
        advice: The setting with which no completion is read.
    """
    missing = f", and {reason} trains on completions: add a column 'completion' or 'messages', or "
    check_column(
        datasets,
        "completion",
        missing=f"{missing}set {advice}",
        advice=f"add it, drop the row, or set {advice}",
        empty=(None, "", []),
    )


def given_completions(
    rows: Rows,
    tokenizer: PreTrainedTokenizerBase,
    *,
    longest_prompt: int | None = None,
    longest_row: int | None = None,
    template: Mapping[str, object] = MappingProxyType({}),
    advice: str = "lmbda=1",
) -> Generated:
    """Return the completions of rows with their prompts, tokenized as for fine-tuning.

    Args:
        rows: Rows with `prompt` and `completion`.
        tokenizer: The student's.
        longest_prompt: Largest number of tokens of a prompt; a longer one loses its beginning.
        longest_row: Largest number of tokens of both; a longer completion loses its end.
        template: Keywords of the chat template, beside those of a row.
        advice: The setting with which no completion is read.

    Raises:
        BadValue: a row has no completion, or its prompt leaves no room for one.
    """
    prompts: list[list[int]] = []
    completions: list[list[int]] = []
    for row in rows:
        if not row.get("completion"):
            raise BadValue(
                f"the row with the prompt {row['prompt']!r} has no completion, which the loss "
                f"reads: give every row one, or set {advice}"
            )
        keywords = {**template, **(row.get(KEYWORDS) or {})}
        encoded = encode_pair({**row, KEYWORDS: keywords}, tokenizer, completion_only=True)
        ids, start = encoded["input_ids"], encoded["labels"].count(IGNORED)
        prompts.append(ids[:start][-(longest_prompt or start) :])
        room = None if longest_row is None else longest_row - len(prompts[-1])
        if room is not None and room < 1:
            raise BadValue(
                f"max_length={longest_row} leaves no token for the completion of the prompt "
                f"{row['prompt']!r}: raise it, or drop the row"
            )
        completions.append(ids[start:][:room])
    return Generated(
        prompt_ids=prompts,
        completion_ids=completions,
        completions=[row["completion"] for row in rows],
    )
