"""From rewards to advantages: baseline and scale are the whole of it.

A completion that no reward function could score is NaN on the way and gets advantage 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.losses.masked import nanstd
from core.shapes import NF, NS, N

STABILISER = 1e-4  # added to the standard deviation, as TRL does; the paper prints none


@dataclass(frozen=True, kw_only=True)
class Advantages:
    """Advantages of the completions of a rollout and the spread that they were scaled by."""

    values: N
    spread: N

    @property
    def zero_spread(self) -> float:
        """Share of completions whose rewards all agree."""
        return torch.isclose(self.spread, torch.zeros_like(self.spread)).float().mean().item()


def group_spread(grouped: Tensor) -> Tensor:
    """std of each group of (G, K), repeated to its shape; 0 for groups of one."""
    alone = grouped.size(1) == 1
    std = torch.zeros_like(grouped[:, :1]) if alone else nanstd(grouped, 1, keepdim=True)
    return std.expand_as(grouped)


def population_spread(grouped: Tensor) -> Tensor:
    """std of each group of (G, K) with divisor K, repeated to its shape; arXiv 2510.00977."""
    deviation = grouped - group_mean(grouped)
    return deviation.square().nanmean(1, keepdim=True).sqrt().expand_as(grouped)


def batch_spread(grouped: Tensor) -> Tensor:
    """std of all values of (G, K), repeated to its shape."""
    alone = grouped.numel() == 1
    return (torch.zeros_like(grouped[:1, 0]) if alone else nanstd(grouped)).expand_as(grouped)


@dataclass(frozen=True)
class RewardScale:
    """A row of `SCALES`: what is reported as the spread, and whether it divides.

    The spread is that of the rewards, or `of_deviations` of what is left without the baseline.
    """

    spread: Callable[[Tensor], Tensor]
    doc: str
    divides: bool = True
    of_deviations: bool = False


SCALES = {
    "group": RewardScale(group_spread, "that of its group"),
    "batch": RewardScale(batch_spread, "that of the rollout"),
    "none": RewardScale(group_spread, "no division", divides=False),
    "population": RewardScale(
        population_spread, "that of its group with the divisor n, arXiv 2510.00977"
    ),
    "centred_batch": RewardScale(
        batch_spread,
        "that of the rollout once each group is centred, arXiv 2510.13786",
        of_deviations=True,
    ),
}


def group_mean(grouped: Tensor) -> Tensor:
    """The mean of each group of (G, K); (G, 1)."""
    return grouped.nanmean(1, keepdim=True)


def mean_of_others(grouped: Tensor) -> Tensor:
    """For each value of (G, K) the mean of the others of its group; NaN for one alone."""
    present = (~grouped.isnan()).sum(1, keepdim=True)
    return (grouped.nansum(1, keepdim=True) - grouped) / (present - 1)


def centred(
    grouped: Tensor, scale: str, baseline: Callable[[Tensor], Tensor] = group_mean
) -> tuple[Tensor, Tensor]:
    """(x - baseline) / (std + 1e-4), and the std; both (G, K)."""
    row = SCALES[scale]
    deviation = grouped - baseline(grouped)
    spread = row.spread(deviation if row.of_deviations else grouped)
    return (deviation / (spread + STABILISER) if row.divides else deviation), spread


def weighted_sum(rewards: NF, weights: Tensor) -> N:
    """sum_f w_f r_f over the functions that scored the completion; NaN where none did."""
    unscored = rewards.isnan().all(1)
    return (rewards * weights).nansum(1).masked_fill(unscored, torch.nan)


def advantages_of(values: Tensor, spread: Tensor) -> Advantages:
    """Both (G, K), one completion after another; what no function scored gets 0."""
    return Advantages(values=values.flatten().nan_to_num(nan=0.0), spread=spread.flatten())


def sum_then_normalize(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:
    """A_i = (r_i - mean_G r) / std_G r of the weighted sum r; arXiv 2402.03300 s4.1.2."""
    return advantages_of(*centred(weighted_sum(rewards, weights).view(-1, group), scale))


def leave_one_out(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:
    """A_i = r_i - mean over the others of its group of the weighted sum r; arXiv 2402.14740."""
    grouped = weighted_sum(rewards, weights).view(-1, group)
    return advantages_of(*centred(grouped, scale, mean_of_others))


def sum_of_scores(rewards: NF, weights: Tensor, group: int) -> N:
    """Z-score every reward in its group, sum with weights; arXiv 2601.05242."""
    n, functions = rewards.shape
    by_function = rewards.view(-1, group, functions).transpose(1, 2).reshape(-1, group)
    scores, _ = centred(by_function, "group")
    per_completion = scores.view(-1, functions, group).transpose(1, 2).reshape(n, functions)
    unscored = rewards.isnan().all(1)
    return (per_completion * weights).nansum(1).masked_fill(unscored, torch.nan)


def normalize_then_sum(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:  # noqa: ARG001 - a table row
    """`sum_of_scores`, z-scored over the batch; `scale` plays no part in it."""
    return advantages_of(*centred(sum_of_scores(rewards, weights, group).view(1, -1), "batch"))


def normalize_then_only_sum(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:  # noqa: ARG001 - a table row
    """`sum_of_scores` itself, which grows with the number of rewards."""
    values = sum_of_scores(rewards, weights, group).view(-1, group)
    return advantages_of(values, group_spread(values))


@dataclass(frozen=True)
class Aggregation:
    """A row of `AGGREGATIONS`: what several rewards become, and whether the scale plays a part."""

    combine: Callable[[NF, Tensor, int, str], Advantages]
    doc: str
    scales: bool = True


AGGREGATIONS = {
    "sum_then_normalize": Aggregation(sum_then_normalize, "summed, then scaled"),
    "normalize_then_sum": Aggregation(
        normalize_then_sum,
        "each divided by its std in the group, summed, then by that of the rollout",
        scales=False,
    ),
    "normalize_then_only_sum": Aggregation(
        normalize_then_only_sum, "the same without the last division", scales=False
    ),
}


def correct_coefficient(rewards: NF, weights: Tensor) -> N:
    """GC_i = 1 if the weighted reward of o_i is positive, else 0: rejection-sampling fine-tuning.

    arXiv 2402.03300 table 10: with ratio 1 the policy loss becomes that of online RFT.
    """
    return (weighted_sum(rewards, weights) > 0).to(rewards.dtype)


def best_coefficient(rewards: N, group: int) -> N:
    """1 for the greatest reward of its group, of equal ones the first, else 0; arXiv 2304.06767.

    With ratio 1 the policy loss becomes that of fine-tuning on the best of each group (RAFT).
    """
    grouped = rewards.view(-1, group).nan_to_num(nan=-torch.inf)
    best = torch.zeros_like(grouped).scatter(1, grouped.argmax(1, keepdim=True), 1.0)
    return (best * grouped.isfinite()).flatten()


def process_advantages(
    rewards: NS, ends: Tensor, group: int, length: int, scale: str = "group"
) -> Tensor:
    """A_{i,t} = sum over steps j of o_i with index(j) >= t of (r_j - mean R) / std R; (N, length).

    R pools the step rewards of all completions of a group; arXiv 2402.03300 s4.1.3. `rewards` is
    NaN beyond the last step of a completion; `ends` holds index(j), the token that ends step j.
    """
    pooled = rewards.reshape(-1, group * rewards.size(1))
    normalised = centred(pooled, scale)[0].view_as(rewards).nan_to_num(nan=0.0)
    at_token = rewards.new_zeros(len(rewards), length).scatter_add(1, ends, normalised)
    return at_token.flip(1).cumsum(1).flip(1)
