"""The completions of a rollout, whose prompts are drawn at once or again until it is full."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from core.collect.completion_log import RewardLogs
from core.collect.generation import Generated
from core.losses.estimators import Scored


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was sampled for prompts that were drawn at once.

    `rows` and `generated` are this process's, `scored` has the completions of all processes.
    """

    rows: list[dict[str, Any]]
    generated: Generated
    scored: Scored
    logs: RewardLogs


def generated_by(draws: Sequence[Draw]) -> Generated:
    """Join this process's completions of all draws."""
    first, *others = (draw.generated for draw in draws)
    if not others:
        return first
    given = {
        name: list(chain(getattr(first, name), *(getattr(other, name) for other in others)))
        for name in (f.name for f in fields(Generated) if f.name != "columns")
        if getattr(first, name) is not None
    }
    return replace(first, **given, columns={})  # which the rewards of each draw have had


def scored_by(draws: Sequence[Draw]) -> Scored:
    """The rewards of all draws, one after another."""
    first, *others = (draw.scored for draw in draws)
    if not others:
        return first
    every = (first, *others)
    steps = [s.steps for s in every if s.steps is not None]
    ends = [s.ends for s in every if s.ends is not None]
    tokens = [s.tokens for s in every if s.tokens is not None]
    return replace(
        first,
        rewards=torch.cat([s.rewards for s in every]),
        length=max(s.length for s in every),
        steps=one_below_another(steps, torch.nan) if steps else None,
        ends=one_below_another(ends, 0) if ends else None,
        tokens=torch.cat(tokens) if tokens else None,
    )


def one_below_another(tables: Iterable[Tensor], filler: float) -> Tensor:
    """Tables (N, S) of several widths, padded on the right to the widest."""
    given = list(tables)
    widest = max(table.size(1) for table in given)
    return torch.cat([pad(table, (0, widest - table.size(1)), value=filler) for table in given])


def places(draws: Sequence[Draw], process: int) -> Tensor:
    """Where this process's completions stand among those of all draws and processes."""
    sizes = [len(draw.scored.rewards) for draw in draws]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    mine = [
        torch.arange(len(draw.rows)) + start + process * len(draw.rows)
        for start, draw in zip(starts, draws, strict=True)
    ]
    return torch.cat(mine).to(draws[0].scored.rewards.device)


def in_order(draws: Sequence[Draw], values: Tensor, processes: int) -> Tensor:
    """Values of all completions (N, ...), gathered process by process, as the draws have them."""
    order = torch.cat([places(draws, process) for process in range(processes)])
    return torch.empty_like(values).index_copy(0, order, values)


def group_means(draws: Sequence[Draw], counts: Tensor, processes: int) -> Tensor:
    """The mean over each completion's group of counts (N,), among all draws and processes.

    The counts come process by process. A group that has none counts as one.
    """
    group = draws[0].scored.group
    sums = in_order(draws, counts, processes).view(-1, group).sum(1).clamp(min=1)
    return (sums.double() / group).repeat_interleave(group)
