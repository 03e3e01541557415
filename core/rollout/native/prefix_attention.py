"""Attention of rows to a prompt that several of them share, and to what each added to it."""

from collections.abc import Sequence

import torch
from torch import Tensor

ROOM = 64  # tokens by which the buffers of the rows' keys and values grow


class SharedAttention:
    """Keys and values of prompts (slots) and of the rows that continue them, layer by layer.

    A row is at a place of its own and belongs to one slot. New prompts take the slots and places
    that have become free, so that nothing is copied. L layers, N slots, R rows, K heads of size D.
    """

    def __init__(self, layers: int, heads: int, size: int, kind: torch.dtype, like: Tensor):
        self.heads, self.size, self.type = heads, size, kind
        prompts, own = like.new_zeros(0, heads, 0, size), like.new_zeros(0, heads, ROOM, size)
        self.prompts = [(prompts, prompts) for _ in range(layers)]  # keys and values (N, K, P, D)
        self.own = [(own, own) for _ in range(layers)]  # the same of the rows (R, K, S, D)
        self.members: list[list[int]] = []  # the rows of each slot
        none = torch.zeros(0, dtype=torch.long, device=like.device)
        self.begun = none  # (N,) lengths of the prompts
        self.added = none  # (R,) tokens that each row added
        self.slot = none  # (R,) the slot of each row

    def open(self, lengths: Sequence[int], rows: Sequence[Sequence[int]]) -> Tensor:
        """Slots (N,) for prompts of these lengths; whatever was in their rows is over."""
        taken = {row for members in rows for row in members}
        self.members = [[r for r in members if r not in taken] for members in self.members]
        free = [slot for slot, members in enumerate(self.members) if not members]
        slots = [*free, *range(len(self.members), len(self.members) + len(lengths))][: len(lengths)]
        self._grow(max(slots) + 1, max(lengths), 1 + max(taken))
        for slot, length, members in zip(slots, lengths, rows, strict=True):
            self.members[slot] = list(members)
            self.begun[slot] = length
            self.added[list(members)] = 0
        self._arrange()
        return torch.tensor(slots, device=self.begun.device)

    def keep(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Keys and values (n, K, P, D) of the prompts in these slots."""
        for room, new in zip(self.prompts[layer], (keys, values), strict=True):
            room[slots, :, : new.size(2)] = new

    def advance(self, alive: Tensor) -> Tensor:
        """Begin a step of the rows that are alive; the position (R,) of its token in every row."""
        positions = self.begun[self.slot] + self.added
        self.width = int(self.added.max()) + 1
        if self.own[0][0].size(2) < self.width:
            self.own = [padded(layer, (0, 0, 0, ROOM)) for layer in self.own]
        # flat places (R x K) of the new keys and values
        self.at = self.added.repeat_interleave(self.heads)
        columns = torch.arange(self.width, device=self.added.device)
        hidden = columns > self.added.unsqueeze(1)
        self.hidden = torch.cat([self.beyond, hidden], dim=1)[:, None, None]
        self.added = self.added + alive
        return positions

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention (R, heads, D) of one query per row, already scaled."""
        rows, width = len(q), self.width
        flat = torch.arange(rows * self.heads, device=q.device)
        own_keys, own_values = (part.flatten(0, 1) for part in self.own[layer])
        own_keys[flat, self.at] = k.reshape(-1, self.size)
        own_values[flat, self.at] = v.reshape(-1, self.size)
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
        """Go on with these rows only."""
        place = {row: new for new, row in enumerate(rows.tolist())}
        members = [[place[row] for row in old if row in place] for old in self.members]
        slots = [slot for slot, left in enumerate(members) if left]
        self.members = [members[slot] for slot in slots]
        self.own = [(keys[rows], values[rows]) for keys, values in self.own]
        self.prompts = [(keys[slots], values[slots]) for keys, values in self.prompts]
        self.begun, self.added = self.begun[slots], self.added[rows]
        self._arrange()

    def _grow(self, slots: int, width: int, rows: int) -> None:
        """Buffers for at least so many slots, tokens of a prompt and rows."""
        n, _, p, _ = self.prompts[0][0].shape
        more = (0, 0, 0, max(0, width - p), 0, 0, 0, max(0, slots - n))
        self.prompts = [padded(layer, more) for layer in self.prompts]
        more = (0, 0, 0, 0, 0, 0, 0, max(0, rows - len(self.added)))
        self.own = [padded(layer, more) for layer in self.own]
        self.begun, self.added = (
            torch.nn.functional.pad(part, (0, max(0, count - len(part))))
            for part, count in ((self.begun, slots), (self.added, rows))
        )
        self.members += [[] for _ in range(slots - len(self.members))]

    def _arrange(self) -> None:
        """Where the rows of a slot stand side by side: `grid` (N, G) of rows, and its inverse."""
        most = max(map(len, self.members))
        grid = torch.tensor(
            [[*members, *[0] * (most - len(members))] for members in self.members],
        )
        rows = len(self.added)
        inverse, slot = torch.zeros(2, rows, dtype=torch.long)
        for number, members in enumerate(self.members):
            for column, row in enumerate(members):
                inverse[row] = number * most + column
                slot[row] = number
        device = self.added.device
        self.plain = grid.flatten().tolist() == list(range(rows))
        self.grid, self.inverse, self.slot = (t.to(device) for t in (grid, inverse, slot))
        used = [number for number, members in enumerate(self.members) if members]
        self.longest = int(self.begun[used].max())
        columns = torch.arange(self.longest, device=device)
        self.beyond = columns >= self.begun[self.slot].unsqueeze(1)

    def _by_slot(self, x: Tensor) -> Tensor:
        """Rows (R, K, g, X) as the heads of slots (N x K, G x g, X)."""
        if not self.plain:
            x = x[self.grid.flatten()]
        return x.unflatten(0, self.grid.shape).transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def _by_row(self, x: Tensor) -> Tensor:
        """The heads of slots (N x K, G x g, X) as rows (R, K, g, X)."""
        x = x.unflatten(0, (-1, self.heads)).unflatten(2, (self.grid.size(1), -1))
        x = x.transpose(1, 2).flatten(0, 1)
        return x if self.plain else x[self.inverse]


def padded(layer: tuple[Tensor, Tensor], more: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Keys and values with zeros behind their dimensions, or as they are."""
    if not any(more):
        return layer
    keys, values = (torch.nn.functional.pad(part, more) for part in layer)
    return keys, values


def softmax(scores: Tensor, kind: torch.dtype) -> Tensor:
    """Weights along the last dimension; of another type than the scores, rounded as PyTorch does.

    Its attention in a narrow type rounds the exponentials that it multiplies with values, not their
    sum.
    """
    if kind == scores.dtype:
        return scores.softmax(-1)
    found = (scores - scores.amax(-1, keepdim=True)).exp()
    return found.to(kind).to(found.dtype) / found.sum(-1, keepdim=True)
