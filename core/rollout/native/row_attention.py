"""Attention of rows that each have a prompt of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from core.rollout.native.prefix_attention import ROOM, softmax


class RowAttention:
    """Keys and values of rows, layer by layer: those of the prompt and of the row's own tokens.

    New rows reuse the indices of finished ones. Shapes: R rows, K key-value heads of size D. Tokens
    are the last dimension, so that a product with one query or one row of weights reads memory in
    order. `kind` is as in `softmax`.
    """

    def __init__(self, layers: int, heads: int, size: int, kind: torch.dtype, like: Tensor):
        self.heads, self.size, self.type = heads, size, kind
        empty = like.new_zeros(0, heads, size, 0)
        self.layers = [(empty, empty) for _ in range(layers)]  # keys and values (R, K, D, T)
        self.used = torch.zeros(0, dtype=torch.long, device=like.device)  # (R,) tokens of each row

    def open(self, lengths: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return row indices (N,) for prompts of these lengths; the rows lose earlier tokens."""
        row_indices = [row_index for members in rows for row_index in members]
        self._grow(1 + max(row_indices), max(lengths))
        self.used[row_indices] = torch.tensor(lengths, device=self.used.device)
        return torch.tensor(row_indices, device=self.used.device)

    def keep(self, layer: int, row_indices: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values (N, K, P, D) of the prompts of these rows."""
        for buffer, new in zip(self.layers[layer], (keys, values), strict=True):
            buffer[row_indices, :, :, : new.size(2)] = new.transpose(2, 3)

    def advance(self, alive: Tensor) -> Tensor:
        """Begin a step; return the position (R,) of each row's new token.

        Only the rows of the mask `alive` (R,) keep the token of this step.
        """
        positions = self.used
        self.width = int(positions.max()) + 1
        self._grow(len(positions), self.width)
        # column of the new keys and values in each head of each row (R x K)
        self.write_column = positions.repeat_interleave(self.heads)
        self.head = torch.arange(len(self.write_column), device=self.write_column.device)
        columns = torch.arange(self.width, device=self.write_column.device)
        self.hidden = (columns > positions.unsqueeze(1))[:, None, None]
        self.used = positions + alive
        return positions

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention (R, heads, D) of one already scaled query per row."""
        keys, values = (part.flatten(0, 1) for part in self.layers[layer])
        keys[self.head, :, self.write_column] = k.reshape(-1, self.size)
        values[self.head, :, self.write_column] = v.reshape(-1, self.size)
        queries = q.reshape(len(self.write_column), -1, self.size)  # (R x K, heads / K, D)
        scores = torch.bmm(queries, keys[..., : self.width])
        scores.view(len(q), self.heads, -1, self.width).masked_fill_(self.hidden, -torch.inf)
        weights = softmax(scores, self.type)
        attended = torch.bmm(values[..., : self.width], weights.transpose(1, 2))
        return attended.transpose(1, 2).reshape_as(q)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]
        self.used = self.used[rows]

    def _grow(self, rows: int, width: int) -> None:
        """Grow the buffers to at least this many rows and tokens."""
        old_rows, *_, old_width = self.layers[0][0].shape
        sizes = (
            0,
            ROOM + width - old_width if width > old_width else 0,
            0,
            0,
            0,
            0,
            0,
            max(0, rows - old_rows),
        )
        if any(sizes):
            self.layers = [(pad(keys, sizes), pad(values, sizes)) for keys, values in self.layers]
            self.used = pad(self.used, (0, sizes[-1]))
