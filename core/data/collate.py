"""Rows of token ids as one batch: padded to the longest, or side by side without padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.data.best_fit import LENGTHS
from core.data.conversations import Row
from core.data.sft import IGNORED
from eval.errors import BadValue


@dataclass(frozen=True)
class DataCollatorForLanguageModeling:
    """Collates rows of `input_ids`, with their `labels` if they have some, as TRL's does.

    With `padding_free` they become one row, and so do rows that are packed: documents that share
    one must not attend to each other, which only their positions say.
    """

    pad_token_id: int
    padding_free: bool = False
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """`input_ids` and `labels`, both (B, T) with `attention_mask`, or (1, N) with positions."""
        ids = [list(row["input_ids"]) for row in rows]
        labels = [list(row.get("labels", row["input_ids"])) for row in rows]
        if not (self.padding_free or LENGTHS in rows[0]):
            mask = [[1] * len(row) for row in ids]
            return self.batch(ids, labels, attention_mask=mask)
        positions = [at for row in rows for length in lengths(row) for at in range(length)]
        targets = [label for row in labels for label in row]
        first = [
            IGNORED if at == 0 else label for at, label in zip(positions, targets, strict=True)
        ]
        return self.batch(
            [[token for row in ids for token in row]], [first], position_ids=[positions]
        )

    def batch(
        self, ids: list[list[int]], labels: list[list[int]], **rest: list[list[int]]
    ) -> dict[str, Tensor]:
        """Tensors of rows, padded on the right."""
        width, multiple = max(map(len, ids)), self.pad_to_multiple_of
        width = -(-width // multiple) * multiple if multiple else width
        fill = {"input_ids": self.pad_token_id, "labels": IGNORED}
        return {
            key: torch.tensor([[*row, *[fill.get(key, 0)] * (width - len(row))] for row in values])
            for key, values in {"input_ids": ids, "labels": labels, **rest}.items()
        }


def lengths(row: Row) -> list[int]:
    """The lengths of the documents in a row.

    Raises:
        BadValue: they are not those of its tokens.
    """
    found: Any = row.get(LENGTHS, [len(row["input_ids"])])  # Any: of a user's dataset
    if sum(found) != len(row["input_ids"]):
        raise BadValue(
            f"{LENGTHS} of a row sum to {sum(found)}: expected the number of its tokens, "
            f"{len(row['input_ids'])}"
        )
    return list(found)
