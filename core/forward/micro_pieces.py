"""Cuts a micro-batch into pieces that go forward and backward one after the other."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.forward.batches import Batch, trained_mask
from core.forward.packing import unpadded

TOKENS = {"cpu": 1024}  # of a piece: its activations stay in a processor's cache
MANY_TOKENS = 2**14  # of a piece on other devices, enough to fill them


def pieces(
    batch: Batch, learns: Tensor, *, uncut: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Pieces, by their rows, of completions that have a gradient, at least one, and of others.

    Completions of one prompt stay together as far as a piece reaches. With `uncut`, all is one
    piece.
    """
    if uncut:
        return [list(range(len(learns)))], []
    prompts = [tuple(row) for row in unpadded(batch["prompt_ids"], batch["prompt_mask"])]
    first = {prompt: row for row, prompt in reversed(list(enumerate(prompts)))}
    order = sorted(range(len(prompts)), key=lambda row: first[prompts[row]])
    lengths = batch["completion_mask"].sum(1).tolist()
    budget = TOKENS.get(batch["completion_ids"].device.type, MANY_TOKENS)
    chosen = learns if learns.any() else torch.ones_like(learns)

    def cut(rows: list[int]) -> list[list[int]]:
        """Rows until their tokens, each prompt counted once, are as many as a piece takes."""
        parts: list[list[int]] = []
        size = budget
        for before, row in zip([None, *rows], rows, strict=False):
            new = before is None or prompts[before] != prompts[row]
            more = lengths[row] + (len(prompts[row]) if new else 0)
            if size + more > budget:
                parts.append([])
                size, more = 0, lengths[row] + len(prompts[row])
            parts[-1].append(row)
            size += more
        return parts

    return cut([i for i in order if chosen[i]]), cut([i for i in order if not chosen[i]])


def counted(batch: Batch) -> Batch:
    """With the number of its `rows`, if not there, and of its trained `tokens`: of all pieces.

    And with that of its `kept` tokens, where some are left out.
    """
    rows = batch["completion_ids"].new_tensor(len(batch["completion_ids"]))
    found = {"rows": rows, **batch, "tokens": trained_mask(batch).sum()}
    return {**found, "kept": kept_mask(batch).sum()} if "kept_tokens" in batch else found


def kept_mask(batch: Batch) -> Tensor:
    """1 on the trained tokens that are kept."""
    return trained_mask(batch) * batch["kept_tokens"]


def take(batch: Batch, rows: Sequence[int] | Tensor) -> Batch:
    """Some rows of a batch; what is one number for all of it stays."""
    return {key: tensor[rows] if tensor.dim() else tensor for key, tensor in batch.items()}
