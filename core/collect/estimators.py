"""From the rewards of a rollout to the advantages of its completions or of their tokens."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from core.losses.advantages import (
    AGGREGATIONS,
    Advantages,
    correct_coefficient,
    process_advantages,
)


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """Rewards of all N completions of a rollout, over all processes.

    `values` (N, F) are NaN where a function did not apply; `steps` and `ends` (N, S) are the step
    rewards and the tokens that end the steps, for process supervision.
    """

    values: Tensor
    steps: Tensor | None = None
    ends: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """How rewards become advantages; the trainer's fields, `group` completions of a prompt."""

    weights: Tensor
    group: int
    scale: str
    aggregation: str


def standardised(rewards: Rewards, grouping: Grouping) -> Advantages:
    """Reward minus the group's mean, scaled; and the spread, which every estimator reports."""
    aggregate = AGGREGATIONS[grouping.aggregation]
    return aggregate(rewards.values, grouping.weights, grouping.group, grouping.scale)


def by_group(rewards: Rewards, grouping: Grouping, length: int) -> Tensor:  # noqa: ARG001 - a table row
    """One advantage per completion (N,)."""
    return standardised(rewards, grouping).values


def by_correctness(rewards: Rewards, grouping: Grouping, length: int) -> Tensor:  # noqa: ARG001 - a table row
    """1 for a completion with a positive reward, else 0 (N,)."""
    return correct_coefficient(rewards.values, grouping.weights)


def by_step(rewards: Rewards, grouping: Grouping, length: int) -> Tensor:
    """One advantage per token (N, length)."""
    if rewards.steps is None or rewards.ends is None:
        raise TypeError("process supervision needs step rewards")
    return process_advantages(rewards.steps, rewards.ends, grouping.group, length, grouping.scale)


ESTIMATORS: dict[str, Callable[[Rewards, Grouping, int], Tensor]] = {
    "group": by_group,
    "process": by_step,
    "correct": by_correctness,
}
