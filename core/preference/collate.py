"""Collation of preference pairs: the chosen answers of a batch, then the rejected ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.conversations import Row
from core.data.pairs import ANSWERS, REF_COLUMNS
from core.data.sft import IGNORED
from core.forward.batches import token_batch
from core.losses.preference import WIN_COLUMNS

LABELS = "labels"  # which transformers counts over an optimizer step, without a row's first one
ONE_LABEL = (IGNORED, 0)
STEP_ROW = "step_row"  # where the pairs of a micro-batch begin among those of its optimizer step
ANSWER_MASK = "answer_mask"  # of answers alone, in batches whose completions have more


def row_numbers(rows: Sequence[Row], *names: str) -> dict[str, Tensor]:
    """Return columns (B,) of the numbers of B rows, and `labels` (B, 2) that count the rows."""
    columns = {name: torch.tensor([row[name] for row in rows]) for name in names if name in rows[0]}
    return {**columns, LABELS: torch.tensor([ONE_LABEL] * len(rows))}


@dataclass(frozen=True)
class PairCollator:
    """Collator of rows of `tokenize_pairs`.

    Attributes:
        pad_token_id: Token of padding.
        pad_to_multiple_of: Multiple to which widths are padded.
        answers: Names of the answers of a row, in the order of a batch.
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None
    answers: Sequence[str] = ANSWERS

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch of B pairs.

        Prompts and completions with their masks have B rows for each of `answers`. Win rates and
        the columns of a reference that was computed beforehand have shape (B,), and `labels` (B, 2)
        count the pairs.
        """
        prompts = [row[f"{name}_prompt_ids"] for name in self.answers for row in rows]
        answers = [row[f"{name}_ids"] for name in self.answers for row in rows]
        batch = token_batch(prompts, answers, self.pad_token_id, self.pad_to_multiple_of)
        return {**batch, **row_numbers(rows, *REF_COLUMNS, *WIN_COLUMNS)}


@dataclass(frozen=True)
class WholeChosenCollator(PairCollator):
    """Collator in whose batches a chosen text is a completion from its second token on.

    So a loss can read the likelihood of prompt and answer. `answer_mask` (2B, T) is 1 on the tokens
    of answers.
    """

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch of B pairs with `answer_mask`."""
        prompts = [row["chosen_prompt_ids"] for row in rows]
        whole = [
            {
                **row,
                "chosen_prompt_ids": prompt[:1],
                "chosen_ids": [*prompt[1:], *row["chosen_ids"]],
            }
            for row, prompt in zip(rows, prompts, strict=True)
        ]
        batch = super().__call__(whole)
        mask = batch["completion_mask"].clone()
        for place, prompt in enumerate(prompts):
            mask[place, : len(prompt) - 1] = 0
        return {**batch, ANSWER_MASK: mask}
