"""Batches of token ids as tensors: padding, shuffling, and cutting a rollout into micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from core.losses.batch import Rollout

Batch = dict[str, Tensor]

PROMPT_KEYS = ("prompt_ids", "prompt_mask")
TEACHER_KEYS = ("teacher_prompt_ids", "teacher_prompt_mask")  # of another prompt for the teacher
TOKEN_KEYS = (*PROMPT_KEYS, "completion_ids", "completion_mask")


@dataclass(frozen=True)
class Parts:
    """A rollout cut into micro-batches, with the number of its trained tokens over all processes.

    `rows` is the mean number of completions of a micro-batch, set if completions were dropped.
    """

    micro_batches: list[Batch]
    tokens: Tensor
    rows: Tensor | None = None


def padded_width(rows: Sequence[Sequence[int]], multiple: int | None) -> int:
    """Return the length of the longest row, at least 1 (also without rows), rounded up."""
    longest = max(1, *map(len, rows), 1)
    return ceil(longest / multiple) * multiple if multiple else longest


def pad_rows(
    rows: Sequence[Sequence[int]], value: int, *, left: bool = False, multiple: int | None = None
) -> tuple[Tensor, Tensor]:
    """Pad rows of token ids on one side; return ids and mask, both (B, W).

    W is the length of the longest row, rounded up to `multiple`.
    """
    width = padded_width(rows, multiple)
    ids = torch.full((len(rows), width), value, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[i, place] = torch.tensor(row, dtype=torch.long)
        mask[i, place] = 1
    return ids, mask


def token_batch(
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    pad_token_id: int,
    multiple: int | None,
) -> Batch:
    """Return left-padded prompts and right-padded completions, with their masks."""
    prompts, prompt_mask = pad_rows(prompt_ids, pad_token_id, left=True, multiple=multiple)
    completions, completion_mask = pad_rows(completion_ids, pad_token_id, multiple=multiple)
    return {
        "prompt_ids": prompts,
        "prompt_mask": prompt_mask,
        "completion_ids": completions,
        "completion_mask": completion_mask,
    }


def trained_mask(batch: Batch) -> Tensor:
    """Return a mask (B, T) of trained tokens: the completion without tokens of an environment."""
    mask = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def as_rollout(batch: Batch, logps: Tensor, *, with_reference: bool) -> Rollout:
    """Convert a micro-batch to a `Rollout`; without `old_per_token_logps` the ratio is 1."""
    old, advantages = batch.get("old_per_token_logps"), batch["advantages"]
    return Rollout(
        logps=logps,
        old_logps=logps.detach() if old is None else old,
        advantages=advantages.unsqueeze(1) if advantages.dim() == 1 else advantages,
        mask=trained_mask(batch),
        ref_logps=batch["ref_per_token_logps"] if with_reference else None,
        sampling_ratio=batch.get("importance_sampling_ratio"),
        sampling_logps=batch.get("sampling_logps"),
        entropy_mask=batch.get("kept_tokens"),
    )


def take_selected(batch: Batch, chosen: Tensor, parts: int) -> Batch:
    """Keep the selected rows and as few others as make their number a multiple of `parts`.

    The other rows have an empty completion mask, so that none of their tokens is trained. The
    column `selected` of the returned batch marks the selected rows.

    Args:
        batch: Rows of a rollout.
        chosen: Boolean mask (B,) of the selected rows.
        parts: Number of micro-batches that the rows have to be divisible by.
    """
    order = chosen.logical_not().int().argsort(stable=True)
    count = max(1, ceil(int(chosen.sum()) / parts)) * parts
    kept_columns = {key: rows[order[:count]] for key, rows in batch.items()}
    selected = chosen[order[:count]]
    kept_columns["completion_mask"] = kept_columns["completion_mask"] * selected.unsqueeze(1)
    return {**kept_columns, "selected": selected}


def for_teacher(batch: Batch) -> Batch:
    """Return the batch as the teacher reads it: after its own prompts, if it has any."""
    if TEACHER_KEYS[0] not in batch:
        return batch
    return batch | {key: batch[own] for key, own in zip(PROMPT_KEYS, TEACHER_KEYS, strict=True)}


def shuffle_rows(batch: Batch, together: int = 1) -> Batch:
    """Permute the rows of all tensors, by one draw from torch's global CPU generator.

    Every `together` rows stay together, in their order.
    """
    groups = torch.randperm(len(batch["completion_ids"]) // together)
    order = (groups.unsqueeze(1) * together + torch.arange(together)).flatten()
    return {key: rows[order.to(rows.device)] for key, rows in batch.items()}


def split_rows(batch: Batch, parts: int) -> list[Batch]:
    """Cut a batch into `parts` micro-batches with equally many rows."""
    size = len(batch["completion_ids"]) // parts
    return [
        {key: rows[i * size : (i + 1) * size] for key, rows in batch.items()} for i in range(parts)
    ]


def trim(batch: Batch) -> Batch:
    """Drop the columns that are padding in every row of a micro-batch.

    Prompts lose columns on their left, and all completion tensors lose columns on their right.
    """
    completion = batch["completion_mask"].any(0).nonzero()
    width = int(completion.max()) + 1 if len(completion) else 1
    trimmed = {key: rows if rows.dim() < 2 else rows[:, :width] for key, rows in batch.items()}
    for keys in (PROMPT_KEYS, TEACHER_KEYS):
        if keys[1] in batch:
            used = batch[keys[1]].any(0).nonzero()
            left = int(used.min()) if len(used) else 0
            trimmed |= {key: batch[key][:, left:] for key in keys}
    return trimmed
