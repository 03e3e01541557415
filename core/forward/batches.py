"""Token ids as tensors: padding, shuffling and cutting a rollout into micro-batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from core.losses.batch import Rollout

Batch = dict[str, Tensor]

PROMPT_KEYS = ("prompt_ids", "prompt_mask")
TOKEN_KEYS = (*PROMPT_KEYS, "completion_ids", "completion_mask")


@dataclass(frozen=True)
class Parts:
    """A rollout cut into micro-batches, and its trained tokens over all processes.

    `rows` are the completions of a micro-batch in the mean, set where some were left out.
    """

    micro_batches: list[Batch]
    tokens: Tensor
    rows: Tensor | None = None


def padded_width(rows: Sequence[Sequence[int]], multiple: int | None) -> int:
    """The length of the longest row, up to a multiple; at least 1."""
    longest = max(1, *(len(row) for row in rows))
    return ceil(longest / multiple) * multiple if multiple else longest


def padded(
    rows: Sequence[Sequence[int]], value: int, *, left: bool = False, multiple: int | None = None
) -> tuple[Tensor, Tensor]:
    """Ids and mask of rows padded to the longest (up to a multiple) on one side; both (B, W)."""
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
    """Prompts flush right and completions flush left, with their masks."""
    prompts, prompt_mask = padded(prompt_ids, pad_token_id, left=True, multiple=multiple)
    completions, completion_mask = padded(completion_ids, pad_token_id, multiple=multiple)
    return {
        "prompt_ids": prompts,
        "prompt_mask": prompt_mask,
        "completion_ids": completions,
        "completion_mask": completion_mask,
    }


def trained_mask(batch: Batch) -> Tensor:
    """1 on the tokens that are trained on: the completion's, less those of an environment."""
    mask = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def as_rollout(batch: Batch, logps: Tensor, *, with_reference: bool) -> Rollout:
    """A micro-batch as the losses take it; without `old_per_token_logps` the ratio is 1."""
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
    """The chosen rows (B,); others, without a trained token, only until `parts` divide them all."""
    order = chosen.logical_not().int().argsort(stable=True)
    count = max(1, ceil(int(chosen.sum()) / parts)) * parts
    taken = {key: rows[order[:count]] for key, rows in batch.items()}
    selected = chosen[order[:count]]
    taken["completion_mask"] = taken["completion_mask"] * selected.unsqueeze(1)
    return {**taken, "selected": selected}


def shuffle_rows(batch: Batch) -> Batch:
    """Permute all rows together; one draw from torch's global CPU generator."""
    order = torch.randperm(len(batch["completion_ids"]))
    return {key: rows[order.to(rows.device)] for key, rows in batch.items()}


def split_rows(batch: Batch, parts: int) -> list[Batch]:
    """Cut into `parts` micro-batches of equally many rows."""
    size = len(batch["completion_ids"]) // parts
    return [
        {key: rows[i * size : (i + 1) * size] for key, rows in batch.items()} for i in range(parts)
    ]


def trim(batch: Batch) -> Batch:
    """Drop the columns that are padding in every row of this micro-batch.

    The prompt loses columns on its left and all completion tensors on their right.
    """
    left, width = columns_used(batch)
    return {key: cut_columns(key, rows, left, width) for key, rows in batch.items()}


def columns_used(batch: Batch) -> tuple[int, int]:
    """First prompt column that is no padding, and number of completion columns up to the last."""
    prompt = batch["prompt_mask"].any(0).nonzero()
    completion = batch["completion_mask"].any(0).nonzero()
    return int(prompt.min()) if len(prompt) else 0, int(completion.max()) + 1 if len(
        completion
    ) else 1


def cut_columns(key: str, rows: Tensor, left: int, width: int) -> Tensor:
    """Cut one tensor of a micro-batch; one value per row has no columns."""
    if rows.dim() < 2:
        return rows
    return rows[:, left:] if key in PROMPT_KEYS else rows[:, :width]
