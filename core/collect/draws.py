"""Draws of prompts for one rollout, which may be repeated until the rollout is full."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import pad

from core.collect.completion_log import RewardLogs
from core.collect.generation import Generated
from core.data.conversations import Row
from core.losses.estimators import Scored


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Completions and rewards of prompts that were drawn together.

    Attributes:
        rows: Dataset rows of this process, one per completion.
        generated: Completions of this process.
        scored: Rewards of the completions of all processes.
        logs: What reward functions logged.
    """

    rows: list[Row]
    generated: Generated
    scored: Scored
    logs: RewardLogs


def join_generated(draws: Sequence[Draw]) -> Generated:
    """Concatenate this process's completions of all draws."""
    first, *remaining = (draw.generated for draw in draws)
    if not remaining:
        return first
    joined = {
        name: list(
            chain(getattr(first, name), *(getattr(draw_rest, name) for draw_rest in remaining))
        )
        for name in (f.name for f in fields(Generated) if f.name != "columns")
        if getattr(first, name) is not None
    }
    return replace(first, **joined, columns={})  # which the rewards of each draw have had


def join_scored(draws: Sequence[Draw]) -> Scored:
    """Concatenate the rewards of all draws."""
    scored = [draw.scored for draw in draws]
    if len(scored) == 1:
        return scored[0]
    steps, ends, tokens = (field_tensors(scored, name) for name in ("steps", "ends", "tokens"))
    return replace(
        scored[0],
        rewards=torch.cat([s.rewards for s in scored]),
        length=max(s.length for s in scored),
        steps=stack_padded(steps, torch.nan) if steps else None,
        ends=stack_padded(ends, 0) if ends else None,
        tokens=torch.cat(tokens) if tokens else None,
    )


def field_tensors(scored: Sequence[Scored], name: str) -> list[Tensor]:
    """Return the tensors that a field has in several draws, without those that are None."""
    return [tensor for s in scored if (tensor := getattr(s, name)) is not None]


def stack_padded(tables: Iterable[Tensor], filler: float) -> Tensor:
    """Concatenate tables (N, S) of different widths, padded on the right to the widest."""
    padded = list(tables)
    widest = max(table.size(1) for table in padded)
    return torch.cat([pad(table, (0, widest - table.size(1)), value=filler) for table in padded])


def row_indices(draws: Sequence[Draw], process: int) -> Tensor:
    """Return the indices of this process's completions among those of all draws and processes."""
    sizes = [len(draw.scored.rewards) for draw in draws]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    mine = [
        torch.arange(len(draw.rows)) + start + process * len(draw.rows)
        for start, draw in zip(starts, draws, strict=True)
    ]
    return torch.cat(mine).to(draws[0].scored.rewards.device)


def restore_order(draws: Sequence[Draw], values: Tensor, processes: int) -> Tensor:
    """Reorder values (N, ...) gathered process by process to the order of the draws."""
    order = torch.cat([row_indices(draws, process) for process in range(processes)])
    return torch.empty_like(values).index_copy(0, order, values)


def group_means(draws: Sequence[Draw], counts: Tensor, processes: int) -> Tensor:
    """Return for each completion the mean count of its group (N,), in the order of the draws.

    `counts` (N,) are ordered process by process. The counts of a group sum to at least 1.
    """
    group = draws[0].scored.group
    sums = restore_order(draws, counts, processes).view(-1, group).sum(1).clamp(min=1)
    return (sums.double() / group).repeat_interleave(group)
