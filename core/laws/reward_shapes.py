"""What several rewards, or a selection of the answers, do to the advantages of a group."""

from itertools import combinations_with_replacement, product

import torch
from torch import Tensor

from core.laws.baselines import all_rewards
from core.losses.advantages import AGGREGATIONS
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored
from core.losses.selection import SELECTIONS

LARGE = 1e6  # what a reward of 1 is here, so that the 1e-4 beside each deviation does not show
APART = 1e-6  # advantages that differ by less are one


def combined(aggregation: str, rewards: Tensor, group: int) -> Tensor:
    """The advantages (N,) of rewards (N, F), summed with equal weights."""
    weights = torch.ones(rewards.size(1), dtype=torch.float64)
    return AGGREGATIONS[aggregation].combine(rewards, weights, group, "group").values


def pair_levels(aggregation: str) -> float:
    """How many sizes of advantages two answers have, of which two rewards of 0 or 1 are summed.

    The pairs of sums are (0, 1), (0, 2) and (1, 2); arXiv 2601.05242 s3.
    """
    pairs = [((0, 0), (1, 0)), ((0, 0), (1, 1)), ((1, 0), (1, 1))]
    rewards = LARGE * torch.tensor(pairs, dtype=torch.float64).view(-1, 2)
    sizes = combined(aggregation, rewards, 2).abs().sort().values
    return float(1 + (sizes.diff() > APART).sum())


# (answers of a group, rewards of each)
COUNTED = (*((group, 2) for group in range(2, 9)), *((4, rewards) for rewards in (3, 4)))


def distinct_groups(aggregation: str) -> list[float]:
    """How many different groups of advantages there are, over all rewards of 0 and 1.

    Each for the answers and rewards of `COUNTED`; the order of the answers does not count.
    """
    return [_distinct(aggregation, group, rewards) for group, rewards in COUNTED]


def _distinct(aggregation: str, group: int, rewards: int) -> float:
    answers = list(product((0.0, 1.0), repeat=rewards))
    groups = list(combinations_with_replacement(answers, group))
    each = LARGE * torch.tensor(groups, dtype=torch.float64)
    found = combined(aggregation, each.view(-1, rewards), group).view(-1, group).sort(1).values
    return float(len((found / APART).round().unique(dim=0)))


def batch_spread(aggregation: str) -> list[float]:
    """The deviation over the rollout of the advantages with 1 to 5 rewards, one after another."""
    found: list[float] = []
    for functions in range(1, 6):
        draw = torch.Generator().manual_seed(functions)
        rewards = torch.rand(64, functions, generator=draw, dtype=torch.float64)
        found.append(float(combined(aggregation, rewards, 8).std()))
    return found


def selected_advantages(selection: str, group: int, kept: int) -> tuple[Tensor, Tensor]:
    """The advantages (G, K) of all 0/1 rewards of a group, and which answers are selected.

    The answers have different lengths, in another order in each group.
    """
    rewards = all_rewards(group)
    draw = torch.Generator().manual_seed(group)
    tokens = torch.stack([torch.randperm(group, generator=draw) + 1 for _ in rewards]).flatten()
    scored = Scored(rewards=rewards.reshape(-1, 1), group=group, length=group, tokens=tokens)
    weights = torch.ones(1, dtype=torch.float64)
    chosen = SELECTIONS[selection].choose(scored, weights, kept)
    if chosen is None:
        raise TypeError(f"selection {selection!r} drops nothing")
    weighing = AdvantageSettings(weights=weights, scale="group", aggregation="sum_then_normalize")
    values = ESTIMATORS["group"].advantages(scored.take(chosen.rows, chosen.group), weighing)
    everywhere = chosen.scatter(len(tokens), values).view(-1, group)
    return everywhere, chosen.scatter(len(tokens), torch.ones_like(values)).view(-1, group).bool()


def selection_errors(selection: str, group: int, kept: int) -> list[float]:
    """How far advantages are from 0 where they are rejected, and from 0 and 1 where they are kept.

    The largest one of a rejected answer; then, over the groups whose kept answers are not all
    alike, how far the mean of the kept ones is from 0 and how far their deviation is from 1.
    """
    values, selected = selected_advantages(selection, group, kept)
    each = values[selected].view(-1, kept)
    mixed = each[each.abs().sum(1) > 0]
    errors = (values[~selected], mixed.mean(1), mixed.std(1) - 1)
    return [float(error.abs().max()) for error in errors]
