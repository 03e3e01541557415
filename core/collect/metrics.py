"""What a step logs: lengths, rewards and the loss's own statistics, under TRL's names."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import cast

import torch
from accelerate import Accelerator
from torch import Tensor

from core.losses.advantages import Advantages, weighted_sum
from core.losses.batch import PolicyConfig, Rollout
from core.losses.loss_statistics import Statistic
from core.losses.masked import nanstd
from core.losses.policy import PolicyLoss
from core.losses.ratio import RATIOS

Metrics = dict[str, float]


def length_metrics(lengths: Tensor, truncated: Tensor) -> Metrics:
    """Lengths in tokens of all completions, and of those that ended by themselves."""
    ended = lengths[~truncated]
    terminated = ended if len(ended) else torch.zeros(1)
    return {
        **summary("completions/{}_length", lengths.float()),
        "completions/clipped_ratio": truncated.float().mean().item(),
        **summary("completions/{}_terminated_length", terminated.float()),
    }


def summary(name: str, values: Tensor) -> Metrics:
    """Mean, least and greatest value."""
    return {
        name.format("mean"): values.mean().item(),
        name.format("min"): values.min().item(),
        name.format("max"): values.max().item(),
    }


def unique_fraction(completion_ids: Sequence[Sequence[int]], group: int) -> float:
    """Share of completions that differ from the others of their group; 1 / group if all agree."""
    groups = [completion_ids[i : i + group] for i in range(0, len(completion_ids), group)]
    distinct = sum(len({tuple(ids) for ids in members}) for members in groups)
    return distinct / len(completion_ids)


def reward_metrics(
    names: Sequence[str], values: Tensor, weights: Tensor, advantages: Advantages
) -> Metrics:
    """Mean and spread of each reward and of their weighted sum, unscored completions left out.

    Where there are such completions, `unscored` says how many of a rollout.
    """
    total = weighted_sum(values, weights)
    each = {
        f"rewards/{name}/{what}": statistic(values[:, i]).item()
        for i, name in enumerate(names)
        for what, statistic in (("mean", torch.nanmean), ("std", nanstd))
    }
    unscored = zip(names, values.isnan().sum(0).tolist(), strict=True)
    return {
        **each,
        **{f"rewards/{name}/unscored": count for name, count in unscored if count},
        "reward": total.nanmean().item(),
        "reward_std": nanstd(total).item(),
        "frac_reward_zero_std": advantages.zero_spread,
    }


@dataclass(frozen=True)
class LossSums:
    """What the metrics of some completions are made of: sums and counts, and means by row."""

    totals: dict[str, Tensor]  # (2,)
    by_row: dict[str, Tensor]  # (B,), NaN where no token is kept


@torch.no_grad()
def loss_sums(
    result: PolicyLoss, r: Rollout, entropy: Tensor, c: PolicyConfig, logs: Sequence[Statistic]
) -> LossSums:
    """KL, entropy and what the loss logs, of one piece of a micro-batch."""
    token_means = {**({} if result.kl is None else {"kl": result.kl}), "entropy": entropy}
    sums = LossSums({name: sum_and_count(x, r.mask) for name, x in token_means.items()}, {})
    level = RATIOS[c.importance_sampling_level]
    for statistic in logs:
        values = statistic.values(r, result.ratio, c)
        # Widths alone don't tell whole completions from tokens: all may be one token long.
        single = (statistic.per_completion or level.per_completion) and values.size(1) == 1
        every = torch.ones_like(values) if single else r.mask
        mask = every if statistic.among is None else every * statistic.among(r)
        if statistic.extreme is None:
            sums.totals[statistic.name] = sum_and_count(values, mask)
            if statistic.spread:
                sums.totals[squared(statistic.name)] = sum_and_count(values.square(), mask)
        else:
            sums.by_row[statistic.name] = row_means(values, mask)
    return sums


def loss_metrics(
    pieces: Sequence[LossSums], logs: Sequence[Statistic], accelerator: Accelerator
) -> Metrics:
    """The means over the tokens of a whole micro-batch, and extremes, on all processes."""
    names = list(pieces[0].totals)
    sums = sum(torch.stack(list(piece.totals.values())) for piece in pieces)
    totals = cast(Tensor, accelerator.reduce(sums, reduction="sum"))
    values = (totals[:, 0] / totals[:, 1].clamp(min=1.0)).tolist()
    metrics = dict(zip(names, values, strict=True))
    counts = dict(zip(names, totals[:, 1].tolist(), strict=True))
    for statistic in logs:
        name = statistic.name
        if statistic.spread:
            metrics[name] = sqrt(max(0.0, metrics.pop(squared(name)) - metrics[name] ** 2))
        if statistic.among is not None and not counts[name]:
            del metrics[name]
        if statistic.extreme is not None:
            rows = torch.cat([piece.by_row[name] for piece in pieces])
            metrics[name] = statistic.extreme(everywhere(rows, accelerator)).item()
    return metrics


def squared(name: str) -> str:
    """The name under which the squares of what a statistic is of are summed."""
    return f"{name} squared"


def everywhere(values: Tensor, accelerator: Accelerator) -> Tensor:
    """The values of all processes, which may have unequally many, that are not NaN."""
    padded = accelerator.pad_across_processes(values, pad_index=float("nan"))  # type: ignore[arg-type] - typed int
    return present(cast(Tensor, accelerator.gather(padded)))


def sum_and_count(x: Tensor, mask: Tensor) -> Tensor:
    """Sum and number (2,) of the values that a mask keeps."""
    return torch.stack([(x * mask).sum(), mask.sum().to(x.dtype)])


def present(values: Tensor) -> Tensor:
    """Return the values that are not NaN, or one NaN if there is none."""
    kept = values[~values.isnan()]
    return kept if len(kept) else values.new_tensor([torch.nan])


def row_means(x: Tensor, mask: Tensor) -> Tensor:
    """Mean of each completion over what a mask keeps, NaN where that is nothing."""
    return (x * mask).sum(-1) / mask.sum(-1)
