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
from core.losses.masked import masked_mean
from core.preference.collate import PairCollator
from core.preference.trainer import tokens_of

OF_A_MODEL = ("chosen", "rejected", "log_weight", "gold")  # what differs between two models


class PairSums(NamedTuple):
    """Log-probabilities of the answers of N pairs under one model, lengths and weights, (N,).

    Attributes:
        chosen: Log-probability of the answer that is better.
        rejected: Log-probability of the other.
        chosen_tokens: Number of tokens of the better answer.
        rejected_tokens: Number of tokens of the other.
        log_weight: Logarithm of WPO's weight of the pair, of sampled alignment and without limit.
        gold: Log-probability of the gold answer; None if the pairs have none.
    """

    chosen: Tensor
    rejected: Tensor
    chosen_tokens: Tensor
    rejected_tokens: Tensor
    log_weight: Tensor
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
            tokens = answer_tokens(model, tokens_of(batch), alignment="sampled")
        mask = batch["completion_mask"].double()
        log_weight = masked_mean(tokens.logps.double() - tokens.alignment, mask)
        sums = (tokens.logps.double().sum(1), mask.sum(1))
        halves = [half for values in sums for half in values.chunk(2)]
        columns.append(tuple(x.cpu() for x in (*halves, torch.stack(log_weight.chunk(2)).sum(0))))
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
