"""Functions from rewards to advantages: subtract a baseline, then divide by a spread.

A completion that no reward function scored has reward NaN and gets advantage 0.
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
    """Advantages of the completions of a rollout, and the standard deviation of their rewards.

    Both are of shape (N,).
    """

    values: N
    spread: N

    @property
    def zero_spread(self) -> float:
        """Share of completions whose group has identical rewards."""
        return torch.isclose(self.spread, torch.zeros_like(self.spread)).float().mean().item()


def group_spread(grouped: Tensor) -> Tensor:
    """Return the standard deviation of each group of (G, K), expanded to (G, K); 0 if K = 1."""
    is_single = grouped.size(1) == 1
    std = torch.zeros_like(grouped[:, :1]) if is_single else nanstd(grouped, 1, keepdim=True)
    return std.expand_as(grouped)


def population_spread(grouped: Tensor) -> Tensor:
    """Return the standard deviation with divisor K of each group of (G, K), expanded to (G, K).

    arXiv 2510.00977.
    """
    deviation = grouped - group_mean(grouped)
    return deviation.square().nanmean(1, keepdim=True).sqrt().expand_as(grouped)


def batch_spread(grouped: Tensor) -> Tensor:
    """Return the standard deviation of all values of (G, K), expanded to it; 0 for one value."""
    is_single = grouped.numel() == 1
    return (torch.zeros_like(grouped[:1, 0]) if is_single else nanstd(grouped)).expand_as(grouped)


@dataclass(frozen=True)
class RewardScale:
    """A row of `SCALES`: the spread that is reported, and whether deviations are divided by it.

    Attributes:
        spread: Maps values (G, K) to their standard deviation, expanded to (G, K).
        divides: Whether deviations are divided by the spread.
        of_deviations: Whether the spread is that of the deviations from the baseline, not of the
            rewards.
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
    """Return the mean (G, 1) of each group of values (G, K), without NaN."""
    return grouped.nanmean(1, keepdim=True)


def mean_of_others(grouped: Tensor) -> Tensor:
    """Return the leave-one-out mean: for each value of (G, K), the mean of its group's others.

    The shape is (G, K); a value without others gets NaN.
    """
    present = (~grouped.isnan()).sum(1, keepdim=True)
    return (grouped.nansum(1, keepdim=True) - grouped) / (present - 1)


def normalise(
    grouped: Tensor, scale: str, baseline: Callable[[Tensor], Tensor] = group_mean
) -> tuple[Tensor, Tensor]:
    """Return (x - baseline) / (std + 1e-4) and the std, both (G, K), for rewards x (G, K).

    Args:
        grouped: Rewards of shape (G, K), one group a row.
        scale: A key of `SCALES`, which says whose std it is and whether it divides.
        baseline: Maps the rewards to what is subtracted from them.
    """
    row = SCALES[scale]
    deviation = grouped - baseline(grouped)
    spread = row.spread(deviation if row.of_deviations else grouped)
    return (deviation / (spread + STABILISER) if row.divides else deviation), spread


def weighted_sum(rewards: NF, weights: Tensor) -> N:
    """Return sum_f w_f r_f of each completion (N,), NaN if no function scored it."""
    unscored = rewards.isnan().all(1)
    return (rewards * weights).nansum(1).masked_fill(unscored, torch.nan)


def advantages_of(values: Tensor, spread: Tensor) -> Advantages:
    """Wrap advantages and spread, both (G, K), as `Advantages`; a NaN advantage becomes 0."""
    return Advantages(values=values.flatten().nan_to_num(nan=0.0), spread=spread.flatten())


def sum_then_normalize(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:
    """Return A_i = (r_i - mean_G r) / std_G r of the weighted sum r; arXiv 2402.03300 s4.1.2."""
    return advantages_of(*normalise(weighted_sum(rewards, weights).view(-1, group), scale))


def leave_one_out(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:
    """Return A_i = r_i - mean_{j != i} r_j within a group, r the weighted sum; arXiv 2402.14740."""
    grouped = weighted_sum(rewards, weights).view(-1, group)
    return advantages_of(*normalise(grouped, scale, mean_of_others))


def sum_of_scores(rewards: NF, weights: Tensor, group: int) -> N:
    """Return the weighted sum (N,) of rewards that are z-scored one by one in their group.

    arXiv 2601.05242. NaN if no function scored a completion.
    """
    n, functions = rewards.shape
    by_function = rewards.view(-1, group, functions).transpose(1, 2).reshape(-1, group)
    scores, _ = normalise(by_function, "group")
    per_completion = scores.view(-1, functions, group).transpose(1, 2).reshape(n, functions)
    unscored = rewards.isnan().all(1)
    return (per_completion * weights).nansum(1).masked_fill(unscored, torch.nan)


def normalize_then_sum(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:  # noqa: ARG001 - a table row
    """Return `sum_of_scores` z-scored over the whole rollout; `scale` is ignored."""
    return advantages_of(*normalise(sum_of_scores(rewards, weights, group).view(1, -1), "batch"))


def normalize_then_only_sum(rewards: NF, weights: Tensor, group: int, scale: str) -> Advantages:  # noqa: ARG001 - a table row
    """Return `sum_of_scores`, whose spread grows with the number of rewards; `scale` is ignored."""
    values = sum_of_scores(rewards, weights, group).view(-1, group)
    return advantages_of(values, group_spread(values))


@dataclass(frozen=True)
class Aggregation:
    """A row of `AGGREGATIONS`: how several rewards become one advantage.

    `scales` is False if the setting `scale` has no effect.
    """

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
    """Return 1 for each completion with a positive weighted reward, else 0 (N,).

    arXiv 2402.03300 table 10: at ratio 1 the policy loss with these advantages is that of online
    rejection-sampling fine-tuning (RFT).
    """
    return (weighted_sum(rewards, weights) > 0).to(rewards.dtype)


def best_coefficient(rewards: N, group: int) -> N:
    """Return 1 for the greatest reward of each group, else 0 (N,); arXiv 2304.06767.

    Of equal rewards the first one counts. NaN is never the greatest, and a group of NaN alone is
    all 0. At ratio 1 the policy loss with these advantages is that of fine-tuning on the best
    completion of each group (RAFT).
    """
    grouped = rewards.view(-1, group).nan_to_num(nan=-torch.inf)
    best = torch.zeros_like(grouped).scatter(1, grouped.argmax(1, keepdim=True), 1.0)
    return (best * grouped.isfinite()).flatten()


def process_advantages(
    rewards: NS, ends: Tensor, group: int, length: int, scale: str = "group"
) -> Tensor:
    """Return A_{i,t} = sum over steps j with index(j) >= t of (r_j - mean R) / std R; (N, length).

    R are the step rewards of all completions of a group; arXiv 2402.03300 s4.1.3.

    Args:
        rewards: Step rewards (N, S), NaN beyond the last step of a completion.
        ends: The token index(j) that ends each step j (N, S).
        group: Completions per prompt.
        length: Tokens of the longest completion.
        scale: A key of `SCALES`.
    """
    pooled = rewards.reshape(-1, group * rewards.size(1))
    normalised = normalise(pooled, scale)[0].view_as(rewards).nan_to_num(nan=0.0)
    at_token = rewards.new_zeros(len(rewards), length).scatter_add(1, ends, normalised)
    return at_token.flip(1).cumsum(1).flip(1)
