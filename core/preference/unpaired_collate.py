"""Collation of labelled answers, followed by the mismatched answers to the same prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from core.data.conversations import Row
from core.data.unpaired import MISMATCHED
from core.forward.batches import TOKEN_KEYS, token_batch
from core.preference.collate import row_numbers

LABEL, WEIGHT = "label", "weight"
UNPAIRED_REFS = ("ref_logps", "ref_KL_logps")


@dataclass(frozen=True)
class UnpairedCollator:
    """Collator of rows of `tokenize_unpaired`.

    Attributes:
        pad_token_id: Token of padding.
        max_length: Largest number of tokens of a prompt with a completion; others are cut.
        pad_to_multiple_of: Multiple to which widths are padded.
    """

    pad_token_id: int
    max_length: int | None = None
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch of B rows.

        Prompts and completions with their masks have B rows, or 2B with mismatched completions.
        Labels, weights and the log-probabilities of a reference that were computed beforehand have
        shape (B,), and `labels` (B, 2) count the rows.
        """
        names = [name for name in ("completion_ids", MISMATCHED) if name in rows[0]]
        prompts = [row["prompt_ids"] for _ in names for row in rows]
        answers = [
            self.cut_completion(row[name], row["prompt_ids"]) for name in names for row in rows
        ]
        batch = token_batch(prompts, answers, self.pad_token_id, self.pad_to_multiple_of)
        return {**batch, **row_numbers(rows, LABEL, WEIGHT, *UNPAIRED_REFS)}

    def cut_completion(self, completion: Sequence[int], prompt: Sequence[int]) -> Sequence[int]:
        """Return the tokens of a completion that fit in `max_length` after a prompt."""
        return (
            completion if self.max_length is None else completion[: self.max_length - len(prompt)]
        )


def answers_of(batch: Mapping[str, Tensor], *, mismatched: bool = False) -> dict[str, Tensor]:
    """Return the tokens of the labelled answers of a batch, or of the mismatched ones."""
    count = len(batch[LABEL])
    part = slice(count, None) if mismatched else slice(count)
    return {name: batch[name][part] for name in TOKEN_KEYS}
