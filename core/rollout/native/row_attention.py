"""Attention of rows that each have a prompt of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from core.rollout.native.prefix_attention import ROOM, softmax


class RowAttention:
    """Keys and values of rows, layer by layer: the prompt's and what the row added to it.

    New rows take the places of finished ones. R rows, K heads of size D; tokens stand along the
    last dimension, where a product with one query or one row of weights reads them in order. `kind`
    is as in `softmax`.
    """

    def __init__(self, layers: int, heads: int, size: int, kind: torch.dtype, like: Tensor):
        self.heads, self.size, self.type = heads, size, kind
        empty = like.new_zeros(0, heads, size, 0)
        self.layers = [(empty, empty) for _ in range(layers)]  # keys and values (R, K, D, T)
        self.used = torch.zeros(0, dtype=torch.long, device=like.device)  # (R,) tokens of each row

    def open(self, lengths: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Places (N,) for prompts of these lengths; what was there is over."""
        places = [place for members in rows for place in members]
        self._grow(1 + max(places), max(lengths))
        self.used[places] = torch.tensor(lengths, device=self.used.device)
        return torch.tensor(places, device=self.used.device)

    def keep(self, layer: int, places: Tensor, keys: Tensor, values: Tensor) -> None:
        """Keys and values (N, K, P, D) of the prompts of these rows."""
        for room, new in zip(self.layers[layer], (keys, values), strict=True):
            room[places, :, :, : new.size(2)] = new.transpose(2, 3)

    def advance(self, alive: Tensor) -> Tensor:
        """Begin a step of the rows that are alive; the position (R,) of its token in every row."""
        positions = self.used
        self.width = int(positions.max()) + 1
        self._grow(len(positions), self.width)
        # places of the new keys and values among all heads (R x K)
        self.at = positions.repeat_interleave(self.heads)
        self.head = torch.arange(len(self.at), device=self.at.device)
        columns = torch.arange(self.width, device=self.at.device)
        self.hidden = (columns > positions.unsqueeze(1))[:, None, None]
        self.used = positions + alive
        return positions

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention (R, heads, D) of one query per row, already scaled."""
        keys, values = (part.flatten(0, 1) for part in self.layers[layer])
        keys[self.head, :, self.at] = k.reshape(-1, self.size)
        values[self.head, :, self.at] = v.reshape(-1, self.size)
        queries = q.reshape(len(self.at), -1, self.size)  # (R x K, heads / K, D)
        scores = torch.bmm(queries, keys[..., : self.width])
        scores.view(len(q), self.heads, -1, self.width).masked_fill_(self.hidden, -torch.inf)
        weights = softmax(scores, self.type)
        found = torch.bmm(values[..., : self.width], weights.transpose(1, 2))
        return found.transpose(1, 2).reshape_as(q)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]
        self.used = self.used[rows]

    def _grow(self, rows: int, width: int) -> None:
        """Buffers for at least so many rows and tokens."""
        have, *_, room = self.layers[0][0].shape
        more = (0, ROOM + width - room if width > room else 0, 0, 0, 0, 0, 0, max(0, rows - have))
        if any(more):
            self.layers = [(pad(keys, more), pad(values, more)) for keys, values in self.layers]
            self.used = pad(self.used, (0, more[-1]))
