"""Collation of preference pairs: the chosen answers of a batch, then the rejected ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.conversations import Row
from core.data.pairs import ANSWERS, REF_COLUMNS, WIN_COLUMNS
from core.data.sft import IGNORED
from core.forward.batches import token_batch

LABELS = "labels"  # which transformers counts over an optimizer step, without a row's first one
ONE_LABEL = (IGNORED, 0)


@dataclass(frozen=True)
class PairCollator:
    """Collator of rows of `tokenize_pairs`.

    Attributes:
        pad_token_id: Token of padding.
        pad_to_multiple_of: Multiple to which widths are padded.
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch of B pairs.

        Prompts and completions with their masks have 2B rows. Win rates and the columns of a
        reference that was computed beforehand have shape (B,), and `labels` (B, 2) count the pairs.
        """
        prompts = [row[f"{name}_prompt_ids"] for name in ANSWERS for row in rows]
        answers = [row[f"{name}_ids"] for name in ANSWERS for row in rows]
        batch = token_batch(prompts, answers, self.pad_token_id, self.pad_to_multiple_of)
        numbers = {
            name: torch.tensor([row[name] for row in rows])
            for name in (*REF_COLUMNS, *WIN_COLUMNS)
            if name in rows[0]
        }
        return {**batch, **numbers, LABELS: torch.tensor([ONE_LABEL] * len(rows))}
