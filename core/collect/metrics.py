"""Metrics of a step, under TRL's names: lengths, rewards and statistics of the loss."""

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
    """Return statistics of lengths in tokens, of all completions and of those that terminated."""
    ended = lengths[~truncated]
    terminated = ended if len(ended) else torch.zeros(1)
    return {
        **summary("completions/{}_length", lengths.float()),
        "completions/clipped_ratio": truncated.float().mean().item(),
        **summary("completions/{}_terminated_length", terminated.float()),
    }


def summary(name: str, values: Tensor) -> Metrics:
    """Return mean, minimum and maximum of values; `name` is a format string for their names."""
    return {
        name.format("mean"): values.mean().item(),
        name.format("min"): values.min().item(),
        name.format("max"): values.max().item(),
    }


def unique_fraction(completion_ids: Sequence[Sequence[int]], group: int) -> float:
    """Return the share of completions that are distinct in their group, 1 / group if all agree.

    There must be at least one completion.
    """
    groups = [completion_ids[i : i + group] for i in range(0, len(completion_ids), group)]
    distinct = sum(len({tuple(ids) for ids in members}) for members in groups)
    return distinct / len(completion_ids)


def reward_metrics(
    names: Sequence[str], values: Tensor, weights: Tensor, advantages: Advantages
) -> Metrics:
    """Return mean and spread of each reward and of their weighted sum, over scored completions.

    A reward that did not score some completions has their number as the metric `unscored`.
    """
    total = weighted_sum(values, weights)
    per_reward = {
        f"rewards/{name}/{label}": statistic(values[:, i]).item()
        for i, name in enumerate(names)
        for label, statistic in (("mean", torch.nanmean), ("std", nanstd))
    }
    unscored = zip(names, values.isnan().sum(0).tolist(), strict=True)
    return {
        **per_reward,
        **{f"rewards/{name}/unscored": count for name, count in unscored if count},
        "reward": total.nanmean().item(),
        "reward_std": nanstd(total).item(),
        "frac_reward_zero_std": advantages.zero_spread,
    }


@dataclass(frozen=True)
class LossSums:
    """Sums behind the metrics of some completions: (sum, count) pairs, and means of completions."""

    totals: dict[str, Tensor]  # (2,)
    by_row: dict[str, Tensor]  # (B,), NaN where no token is kept


@torch.no_grad()
def loss_sums(
    result: PolicyLoss, r: Rollout, entropy: Tensor, c: PolicyConfig, logs: Sequence[Statistic]
) -> LossSums:
    """Return the sums of KL, entropy and the loss's statistics for one piece of a micro-batch."""
    token_means = {**({} if result.kl is None else {"kl": result.kl}), "entropy": entropy}
    sums = LossSums({name: sum_and_count(x, r.mask) for name, x in token_means.items()}, {})
    level = RATIOS[c.importance_sampling_level]
    for statistic in logs:
        values = statistic.values(r, result.ratio, c)
        # Widths alone don't tell whole completions from tokens: all may be one token long.
        single = (statistic.per_completion or level.per_completion) and values.size(1) == 1
        all_values = torch.ones_like(values) if single else r.mask
        mask = all_values if statistic.subset is None else all_values * statistic.subset(r)
        if statistic.extreme is None:
            sums.totals[statistic.name] = sum_and_count(values, mask)
            if statistic.spread:
                sums.totals[squares_name(statistic.name)] = sum_and_count(values.square(), mask)
        else:
            sums.by_row[statistic.name] = row_means(values, mask)
    return sums


def loss_metrics(
    pieces: Sequence[LossSums], logs: Sequence[Statistic], accelerator: Accelerator
) -> Metrics:
    """Return the token means of a whole micro-batch, and extremes, over all processes."""
    names = list(pieces[0].totals)
    sums = sum(torch.stack(list(piece.totals.values())) for piece in pieces)
    totals = cast(Tensor, accelerator.reduce(sums, reduction="sum"))
    values = (totals[:, 0] / totals[:, 1].clamp(min=1.0)).tolist()
    metrics = dict(zip(names, values, strict=True))
    counts = dict(zip(names, totals[:, 1].tolist(), strict=True))
    for statistic in logs:
        name = statistic.name
        if statistic.spread:
            metrics[name] = sqrt(max(0.0, metrics.pop(squares_name(name)) - metrics[name] ** 2))
        if statistic.subset is not None and not counts[name]:
            del metrics[name]
        if statistic.extreme is not None:
            rows = torch.cat([piece.by_row[name] for piece in pieces])
            metrics[name] = statistic.extreme(gather_valid(rows, accelerator)).item()
    return metrics


def squares_name(name: str) -> str:
    """Return the name under which the squares of a statistic's values are summed."""
    return f"{name} squared"


def gather_valid(values: Tensor, accelerator: Accelerator) -> Tensor:
    """Gather values from all processes, which may have different numbers of them, without NaN."""
    padded = accelerator.pad_across_processes(values, pad_index=float("nan"))  # type: ignore[arg-type] - typed int
    return drop_nan(cast(Tensor, accelerator.gather(padded)))


def sum_and_count(x: Tensor, mask: Tensor) -> Tensor:
    """Return the sum and the number (2,) of the values that a mask keeps."""
    return torch.stack([(x * mask).sum(), mask.sum().to(x.dtype)])


def drop_nan(values: Tensor) -> Tensor:
    """Return the values that are not NaN, or a single NaN if there is none."""
    valid = values[~values.isnan()]
    return valid if len(valid) else values.new_tensor([torch.nan])


def row_means(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each row over its masked values; NaN for a row without any."""
    return (x * mask).sum(-1) / mask.sum(-1)
