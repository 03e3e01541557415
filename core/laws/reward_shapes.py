"""Laws of the advantages of a group under several rewards, or a selection of its answers."""

from itertools import combinations_with_replacement, product

import torch
from torch import Tensor

from core.laws.baselines import all_rewards
from core.losses.advantages import AGGREGATIONS
from core.losses.estimators import ESTIMATORS, AdvantageSettings, Scored
from core.losses.selection import SELECTIONS

LARGE = 1e6  # what a reward of 1 is here, so that the 1e-4 beside each deviation does not show
APART = 1e-6  # advantages that differ by less are one


def aggregated_advantages(aggregation: str, rewards: Tensor, group: int) -> Tensor:
    """Return the advantages (N,) of rewards (N, F) of F functions with equal weights."""
    weights = torch.ones(rewards.size(1), dtype=torch.float64)
    return AGGREGATIONS[aggregation].combine(rewards, weights, group, "group").values


def pair_levels(aggregation: str) -> float:
    """Count the distinct sizes of advantages of two answers, each paid by two rewards of 0 or 1.

    The pairs of sums are (0, 1), (0, 2) and (1, 2); arXiv 2601.05242 s3.
    """
    pairs = [((0, 0), (1, 0)), ((0, 0), (1, 1)), ((1, 0), (1, 1))]
    rewards = LARGE * torch.tensor(pairs, dtype=torch.float64).view(-1, 2)
    sizes = aggregated_advantages(aggregation, rewards, 2).abs().sort().values
    return float(1 + (sizes.diff() > APART).sum())


# (answers of a group, rewards of each)
COUNTED = (*((group, 2) for group in range(2, 9)), *((4, rewards) for rewards in (3, 4)))


def distinct_groups(aggregation: str) -> list[float]:
    """Count the distinct groups of advantages over all 0/1 rewards, for each row of `COUNTED`.

    The order of the answers does not matter.
    """
    return [_distinct(aggregation, group, rewards) for group, rewards in COUNTED]


def _distinct(aggregation: str, group: int, rewards: int) -> float:
    answers = list(product((0.0, 1.0), repeat=rewards))
    groups = list(combinations_with_replacement(answers, group))
    reward_rows = LARGE * torch.tensor(groups, dtype=torch.float64)
    advantages = (
        aggregated_advantages(aggregation, reward_rows.view(-1, rewards), group)
        .view(-1, group)
        .sort(1)
        .values
    )
    return float(len((advantages / APART).round().unique(dim=0)))


def batch_spread(aggregation: str) -> list[float]:
    """Return the standard deviation of advantages over a rollout, with 1 to 5 rewards."""
    deviations: list[float] = []
    for functions in range(1, 6):
        draw = torch.Generator().manual_seed(functions)
        rewards = torch.rand(64, functions, generator=draw, dtype=torch.float64)
        deviations.append(float(aggregated_advantages(aggregation, rewards, 8).std()))
    return deviations


def selected_advantages(selection: str, group: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the advantages (G, K) of all 0/1 rewards of a group, and a mask of selected answers.

    Within a group the answers have lengths 1 to K in a random order.

    Args:
        selection: a row of `core.losses.selection.SELECTIONS`.
        group: K, the number of answers of a group.
        count: the number of answers to select in each group.

    Raises:
        TypeError: the selection drops no answer.
    """
    rewards = all_rewards(group)
    draw = torch.Generator().manual_seed(group)
    tokens = torch.stack([torch.randperm(group, generator=draw) + 1 for _ in rewards]).flatten()
    scored = Scored(rewards=rewards.reshape(-1, 1), group=group, length=group, tokens=tokens)
    weights = torch.ones(1, dtype=torch.float64)
    chosen = SELECTIONS[selection].choose(scored, weights, count)
    if chosen is None:
        raise TypeError(f"selection {selection!r} drops nothing")
    weighing = AdvantageSettings(weights=weights, scale="group", aggregation="sum_then_normalize")
    values = ESTIMATORS["group"].advantages(scored.take(chosen.rows, chosen.group), weighing)
    scattered = chosen.scatter(len(tokens), values).view(-1, group)
    return scattered, chosen.scatter(len(tokens), torch.ones_like(values)).view(-1, group).bool()


def selection_errors(selection: str, group: int, count: int) -> list[float]:
    """Return three errors of the advantages of selected answers.

    These are the largest |advantage| of a rejected answer, and, over the groups whose selected
    answers differ, the largest distance of their mean from 0 and of their deviation from 1.
    """
    values, selected = selected_advantages(selection, group, count)
    selected_values = values[selected].view(-1, count)
    mixed = selected_values[selected_values.abs().sum(1) > 0]
    errors = (values[~selected], mixed.mean(1), mixed.std(1) - 1)
    return [float(error.abs().max()) for error in errors]
