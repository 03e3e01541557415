"""Collation of token rows: padded to the longest row, or concatenated without padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from core.data.best_fit import LENGTHS
from core.data.conversations import Row
from core.data.sft import IGNORED
from eval.errors import BadValue


@dataclass(frozen=True)
class DataCollatorForLanguageModeling:
    """Collator of rows of `input_ids` and optional `labels`, with the interface of TRL's.

    With `padding_free`, or if rows are packed, a batch is one concatenated row whose positions
    restart at each document, so that documents do not attend to each other. With
    `return_position_ids`, rows are padded also if they are packed, and have these positions.
    """

    pad_token_id: int
    padding_free: bool = False
    return_position_ids: bool = False
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """Return the tensors of a batch.

        `input_ids` and `labels` have shape (B, T) with an `attention_mask` and, on request,
        `position_ids`, or (1, N) with `position_ids` where rows are concatenated.
        """
        ids = [list(row["input_ids"]) for row in rows]
        labels = [list(row.get("labels", row["input_ids"])) for row in rows]
        joins_rows = LENGTHS in rows[0] and not self.return_position_ids
        if not (self.padding_free or joins_rows):
            places = {"position_ids": position_rows(rows)} if self.return_position_ids else {}
            mask = [[1] * len(row) for row in ids]
            return self.batch(ids, labels, attention_mask=mask, **places)
        positions = list(chain.from_iterable(position_rows(rows)))
        tokens = list(chain.from_iterable(ids))
        pairs = zip(positions, chain.from_iterable(labels), strict=True)
        targets = [label if place else IGNORED for place, label in pairs]
        return self.batch([tokens], [targets], position_ids=[positions])

    def batch(
        self, ids: list[list[int]], labels: list[list[int]], **more_columns: list[list[int]]
    ) -> dict[str, Tensor]:
        """Return each column as a tensor (B, T), padded on the right; there must be a row.

        The padding is `pad_token_id` in `input_ids`, -100 in `labels` and 0 in other columns.
        """
        width, multiple = max(map(len, ids)), self.pad_to_multiple_of
        width = -(-width // multiple) * multiple if multiple else width
        fillers = {"input_ids": self.pad_token_id, "labels": IGNORED}
        return {
            key: torch.tensor(
                [[*row, *[fillers.get(key, 0)] * (width - len(row))] for row in values]
            )
            for key, values in {"input_ids": ids, "labels": labels, **more_columns}.items()
        }

    @staticmethod
    def get_position_ids_from_packed_seq_lengths(
        batch_seq_lengths: Sequence[Sequence[int]],
    ) -> list[Tensor]:
        """Return the positions of each row, given the lengths of its documents; a name of TRL."""
        return [torch.cat([torch.arange(n) for n in row]) for row in batch_seq_lengths]


def position_rows(rows: Sequence[Row]) -> list[list[int]]:
    """Return the positions of the tokens of each row, which restart at each document."""
    return [[place for length in lengths(row) for place in range(length)] for row in rows]


def lengths(row: Row) -> list[int]:
    """Return the lengths of the documents in a row.

    Raises:
        BadValue: they do not sum to the number of the row's tokens.
    """
    document_lengths: Sequence[int] = row.get(LENGTHS, [len(row["input_ids"])])
    if sum(document_lengths) != len(row["input_ids"]):
        raise BadValue(
            f"{LENGTHS} of a row sum to {sum(document_lengths)}: expected the number of its "
            f"tokens, {len(row['input_ids'])}"
        )
    return list(document_lengths)
