"""Collation of rows that are scored: pairs of texts, and solutions with labelled steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.conversations import Row
from core.data.pair_columns import MARGIN
from core.data.scored_pairs import IDS
from core.data.sft import IGNORED
from core.forward.batches import pad_rows
from core.preference.collate import LABELS, row_numbers


@dataclass(frozen=True)
class ScoredPairCollator:
    """Collator of rows of `tokenize_scored_pairs`.

    Attributes:
        pad_token_id: Token of padding.
        pad_to_multiple_of: Multiple to which widths are padded.
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch of B pairs.

        `input_ids` and `attention_mask` (2B, T) have the chosen texts, then the rejected ones;
        `margin` has shape (B,), and `labels` (B, 2) count the pairs.
        """
        texts = [row[name] for name in IDS for row in rows]
        ids, mask = pad_rows(texts, self.pad_token_id, multiple=self.pad_to_multiple_of)
        margins = {}
        if MARGIN in rows[0]:
            margins = {MARGIN: torch.tensor([float(row[MARGIN]) for row in rows])}
        return {"input_ids": ids, "attention_mask": mask, **row_numbers(rows), **margins}


@dataclass(frozen=True)
class StepCollator:
    """Collator of rows of `StepEncoder`.

    Attributes:
        pad_token_id: Token of padding.
    """

    pad_token_id: int

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return `input_ids`, `attention_mask` and `labels` (B, T) of B solutions."""
        ids, mask = pad_rows([row["input_ids"] for row in rows], self.pad_token_id)
        labels, _ = pad_rows([row[LABELS] for row in rows], IGNORED)
        return {"input_ids": ids, "attention_mask": mask, LABELS: labels}
