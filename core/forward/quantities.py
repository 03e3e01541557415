"""Quantities of the probabilities that a model assigns to the completions of rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from datasets import Dataset  # pyright: ignore[reportMissingTypeStubs] - it ships none
from torch import Tensor
from transformers import PreTrainedModel

from core.data.collate import DataCollatorForLanguageModeling
from core.data.conversations import Row, Tokenizer
from core.data.preparation import tokenize_rows
from core.data.sft import IGNORED
from core.forward.labelled import labelled_logps

DATASET: Any = Dataset  # Any: its methods are half typed
BATCH = 8  # rows of one forward pass
Z = 1.959964  # of a 95 % interval
# From the log-probabilities of tokens; each is averaged over all tokens of the completions.
QUANTITIES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "nll": lambda logps: -logps,
    "nll/without_end": lambda logps: -logps[:-1],  # the last token of a completion ends it
    "extreme_share": lambda logps: ((logps.exp() < 0.05) | (logps.exp() > 0.95)).double(),
}


@dataclass(frozen=True)
class Quantity:
    """A mean over tokens, its 95 % interval over the sampling of rows, and the number of rows."""

    value: float
    low: float
    high: float
    n: int


def completion_logps(
    model: PreTrainedModel, tokenizer: Tokenizer, rows: Sequence[Row]
) -> list[Tensor]:
    """Return the log-probabilities of each row's completion tokens, including the end token."""
    encoded = list(tokenize_rows(DATASET.from_list(list(rows)), tokenizer))
    collate = DataCollatorForLanguageModeling(tokenizer.pad_token_id or 0)
    logps_by_row: list[Tensor] = []
    for start in range(0, len(encoded), BATCH):
        chunk = encoded[start : start + BATCH]
        inputs = {name: value.to(model.device) for name, value in collate(chunk).items()}
        labels = inputs.pop("labels")
        with torch.inference_mode():
            logps = labelled_logps(model, inputs, labels, with_logits=False).logps
        counts = labels[:, 1:].ne(IGNORED).sum(1).tolist()
        logps_by_row += [row_logps.double().cpu() for row_logps in logps.split(counts)]
    return logps_by_row


def quantities(names: Sequence[str], logps: Sequence[Tensor]) -> Iterator[tuple[str, Quantity]]:
    """Yield the name and value of each quantity, from the log-probabilities of every row."""
    for name in names:
        yield name, token_mean([QUANTITIES[name](row) for row in logps])


def token_mean(rows: Sequence[Tensor]) -> Quantity:
    """Return the mean over the tokens of all rows."""
    return ratio_of_sums(rows, [torch.ones_like(row) for row in rows])


def ratio_of_sums(above: Sequence[Tensor], below: Sequence[Tensor]) -> Quantity:
    """Return r = sum_i s_i / sum_i w_i with its 95 % interval, where rows i are the sampled unit.

    s_i and w_i are the sums over row i of `above` and `below`. With R rows, r has the variance R /
    (R - 1) sum (s_i - r w_i)^2 / (sum w_i)^2.
    """
    sums, weights = [float(row.sum()) for row in above], [float(row.sum()) for row in below]
    ratio, n = sum(sums) / sum(weights), len(above)
    squares = sum((s - ratio * w) ** 2 for s, w in zip(sums, weights, strict=True))
    half = Z * sqrt(n / max(1, n - 1) * squares) / sum(weights)
    return Quantity(ratio, ratio - half, ratio + half, n)
