"""Attention of rows to a prompt that several rows share and to the row's own tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

ROOM = 64  # tokens by which the buffers of the rows' keys and values grow


class SharedAttention:
    """Keys and values of prompts (slots) and of the rows that continue them, layer by layer.

    Each row has an index and belongs to one slot. New prompts reuse the slots and rows that have
    become free, so nothing is copied. Shapes: L layers, N slots, R rows, K key-value heads of size
    D.
    """

    def __init__(self, layers: int, heads: int, size: int, kind: torch.dtype, like: Tensor):
        self.heads, self.size, self.type = heads, size, kind
        prompts, rows = like.new_zeros(0, heads, 0, size), like.new_zeros(0, heads, ROOM, size)
        self.prompts = [(prompts, prompts) for _ in range(layers)]  # keys and values (N, K, P, D)
        self.row_layers = [
            (rows, rows) for _ in range(layers)
        ]  # the rows' keys and values (R, K, S, D)
        self.members: list[list[int]] = []  # the rows of each slot
        empty = torch.zeros(0, dtype=torch.long, device=like.device)
        self.prompt_lengths = empty  # (N,) lengths of the prompts
        self.row_lengths = empty  # (R,) number of own tokens of each row
        self.slot = empty  # (R,) the slot of each row

    def open(self, lengths: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Return slots (N,) for prompts of these lengths; their rows lose their earlier tokens."""
        reused_rows = {row for members in rows for row in members}
        self.members = [[r for r in members if r not in reused_rows] for members in self.members]
        free = [slot for slot, members in enumerate(self.members) if not members]
        slots = [*free, *range(len(self.members), len(self.members) + len(lengths))][: len(lengths)]
        self._grow(max(slots) + 1, max(lengths), 1 + max(reused_rows))
        for slot, length, members in zip(slots, lengths, rows, strict=True):
            self.members[slot] = list(members)
            self.prompt_lengths[slot] = length
            self.row_lengths[list(members)] = 0
        self._arrange()
        return torch.tensor(slots, device=self.prompt_lengths.device)

    def keep(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values (n, K, P, D) of the prompts of these slots."""
        for buffer, new in zip(self.prompts[layer], (keys, values), strict=True):
            buffer[slots, :, : new.size(2)] = new

    def advance(self, alive: Tensor) -> Tensor:
        """Begin a step; return the position (R,) of each row's new token.

        Only the rows of the mask `alive` (R,) keep the token of this step.
        """
        positions = self.prompt_lengths[self.slot] + self.row_lengths
        self.width = int(self.row_lengths.max()) + 1
        if self.row_layers[0][0].size(2) < self.width:
            self.row_layers = [pad_layer(layer, (0, 0, 0, ROOM)) for layer in self.row_layers]
        # column of the new keys and values in each head of each row (R x K)
        self.write_column = self.row_lengths.repeat_interleave(self.heads)
        columns = torch.arange(self.width, device=self.row_lengths.device)
        hidden = columns > self.row_lengths.unsqueeze(1)
        self.hidden = torch.cat([self.past_prompt, hidden], dim=1)[:, None, None]
        self.row_lengths = self.row_lengths + alive
        return positions

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return the attention (R, heads, D) of one already scaled query per row."""
        rows, width = len(q), self.width
        flat = torch.arange(rows * self.heads, device=q.device)
        own_keys, own_values = (part.flatten(0, 1) for part in self.row_layers[layer])
        own_keys[flat, self.write_column] = k.reshape(-1, self.size)
        own_values[flat, self.write_column] = v.reshape(-1, self.size)
        q = q.unflatten(1, (self.heads, -1))  # (R, K, heads / K, D)
        keys, values = (part.flatten(0, 1)[:, : self.longest] for part in self.prompts[layer])
        to_prompt = self._by_row(torch.bmm(self._by_slot(q), keys.transpose(1, 2)))
        to_own = torch.bmm(q.flatten(0, 1), own_keys[:, :width].transpose(1, 2)).view(
            rows, self.heads, -1, width
        )
        scores = torch.cat([to_prompt, to_own], dim=-1).masked_fill_(self.hidden, -torch.inf)
        weights = softmax(scores, self.type)
        from_prompt = torch.bmm(self._by_slot(weights[..., : self.longest]), values)
        from_own = torch.bmm(
            weights[..., self.longest :].flatten(0, 1), own_values[:, :width]
        ).view_as(q)
        return (self._by_row(from_prompt) + from_own).flatten(1, 2)

    def select(self, rows: Tensor) -> None:
        """Keep only these rows, in this order, and the slots they belong to."""
        new_index = {row: new for new, row in enumerate(rows.tolist())}
        members = [[new_index[row] for row in old if row in new_index] for old in self.members]
        slots = [slot for slot, remaining_rows in enumerate(members) if remaining_rows]
        self.members = [members[slot] for slot in slots]
        self.row_layers = [(keys[rows], values[rows]) for keys, values in self.row_layers]
        self.prompts = [(keys[slots], values[slots]) for keys, values in self.prompts]
        self.prompt_lengths, self.row_lengths = self.prompt_lengths[slots], self.row_lengths[rows]
        self._arrange()

    def _grow(self, slots: int, width: int, rows: int) -> None:
        """Grow the buffers to at least this many slots, prompt tokens and rows."""
        old_slots, _, old_width, _ = self.prompts[0][0].shape
        sizes = (0, 0, 0, max(0, width - old_width), 0, 0, 0, max(0, slots - old_slots))
        self.prompts = [pad_layer(layer, sizes) for layer in self.prompts]
        sizes = (0, 0, 0, 0, 0, 0, 0, max(0, rows - len(self.row_lengths)))
        self.row_layers = [pad_layer(layer, sizes) for layer in self.row_layers]
        self.prompt_lengths, self.row_lengths = (
            torch.nn.functional.pad(part, (0, max(0, count - len(part))))
            for part, count in ((self.prompt_lengths, slots), (self.row_lengths, rows))
        )
        self.members += [[] for _ in range(slots - len(self.members))]

    def _arrange(self) -> None:
        """Compute `grid` (N, G), the rows of each slot side by side, and its inverse."""
        largest_slot = max(map(len, self.members))
        grid = torch.tensor(
            [[*members, *[0] * (largest_slot - len(members))] for members in self.members],
        )
        rows = len(self.row_lengths)
        inverse, slot = torch.zeros(2, rows, dtype=torch.long)
        for slot_index, members in enumerate(self.members):
            for column, row in enumerate(members):
                inverse[row] = slot_index * largest_slot + column
                slot[row] = slot_index
        device = self.row_lengths.device
        self.is_in_order = grid.flatten().tolist() == list(range(rows))
        self.grid, self.inverse, self.slot = (
            indices.to(device) for indices in (grid, inverse, slot)
        )
        used_slots = [slot_index for slot_index, members in enumerate(self.members) if members]
        self.longest = int(self.prompt_lengths[used_slots].max())
        columns = torch.arange(self.longest, device=device)
        self.past_prompt = columns >= self.prompt_lengths[self.slot].unsqueeze(1)

    def _by_slot(self, x: Tensor) -> Tensor:
        """Reshape rows (R, K, g, X) to the heads of slots (N x K, G x g, X)."""
        if not self.is_in_order:
            x = x[self.grid.flatten()]
        return x.unflatten(0, self.grid.shape).transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def _by_row(self, x: Tensor) -> Tensor:
        """Reshape the heads of slots (N x K, G x g, X) to rows (R, K, g, X)."""
        x = x.unflatten(0, (-1, self.heads)).unflatten(2, (self.grid.size(1), -1))
        x = x.transpose(1, 2).flatten(0, 1)
        return x if self.is_in_order else x[self.inverse]


def pad_layer(layer: tuple[Tensor, Tensor], sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Zero-pad keys and values as `torch.nn.functional.pad` does.

    They are returned unchanged if all `sizes` are 0.
    """
    if not any(sizes):
        return layer
    keys, values = (torch.nn.functional.pad(part, sizes) for part in layer)
    return keys, values


def softmax(scores: Tensor, kind: torch.dtype) -> Tensor:
    """Return softmax weights over the last dimension, rounded as PyTorch's attention does.

    If `kind` is narrower than the scores, PyTorch's attention rounds the exponentials that multiply
    the values, but not their sum.
    """
    if kind == scores.dtype:
        return scores.softmax(-1)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials.to(kind).to(exponentials.dtype) / exponentials.sum(-1, keepdim=True)
