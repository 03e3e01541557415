"""Log-probabilities of the answers of pairs under a model."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from core.data.conversations import Row, Tokenizer
from core.data.pairs import GOLD, encode_answers
from core.forward.answers import answer_tokens
from core.forward.quantities import BATCH
from core.preference.collate import PairCollator
from core.preference.trainer import tokens_of


class PairSums(NamedTuple):
    """Sums of log-probabilities of the answers of N pairs under one model, and their lengths, (N,).

    Attributes:
        chosen: Log-probability of the answer that is better.
        rejected: Log-probability of the other.
        chosen_tokens: Number of tokens of the better answer.
        rejected_tokens: Number of tokens of the other.
        gold: Log-probability of the gold answer; None if the pairs have none.
    """

    chosen: Tensor
    rejected: Tensor
    chosen_tokens: Tensor
    rejected_tokens: Tensor
    gold: Tensor | None = None


def pair_sums(model: PreTrainedModel, tokenizer: Tokenizer, rows: Sequence[Row]) -> PairSums:
    """Return the log-probabilities of pairs; flipped ones are turned round, so labels are right."""
    encoded = [
        encode_answers(with_right_labels(row), tokenizer, None, "keep_start") for row in rows
    ]
    collate = PairCollator(tokenizer.pad_token_id or 0)
    columns: list[tuple[Tensor, ...]] = []
    for start in range(0, len(encoded), BATCH):
        batch = {k: v.to(model.device) for k, v in collate(encoded[start : start + BATCH]).items()}
        with torch.inference_mode():
            logps = answer_tokens(model, tokens_of(batch)).logps
        sums = (logps.double().sum(1), batch["completion_mask"].double().sum(1))
        columns.append(tuple(half.cpu() for values in sums for half in values.chunk(2)))
    gold = gold_sums(model, tokenizer, rows) if all(GOLD in row for row in rows) else None
    return PairSums(*(torch.cat(column) for column in zip(*columns, strict=True)), gold=gold)


def gold_sums(model: PreTrainedModel, tokenizer: Tokenizer, rows: Sequence[Row]) -> Tensor:
    """Return the log-probabilities (N,) of the gold answers of rows."""
    as_chosen = [{**row, "chosen": row[GOLD], "flipped": False} for row in rows]
    plain = [{name: row[name] for name in row if name != GOLD} for row in as_chosen]
    return pair_sums(model, tokenizer, plain).chosen


def with_right_labels(row: Row) -> Row:
    """Return a row whose chosen answer is the better one."""
    if not row.get("flipped"):
        return row
    return {**row, "chosen": row["rejected"], "rejected": row["chosen"]}
