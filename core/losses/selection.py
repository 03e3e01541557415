"""Which completions of a scored rollout are trained on; nothing is computed for the others."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.losses.advantages import group_spread, weighted_sum
from core.losses.estimators import Scored


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The numbers of the completions that are trained on (M,), whole groups of `group`."""

    rows: Tensor
    group: int

    def first(self, count: int) -> "Selected":
        """The first `count` of them at most."""
        return replace(self, rows=self.rows[:count])

    def filled_up(self, size: int, count: int) -> "Selected":
        """With the first of the others among all `count` completions, until there are `size`."""
        others = torch.ones(count, dtype=torch.bool, device=self.rows.device)
        others[self.rows] = False
        fillers = others.nonzero()[: max(0, size - len(self.rows)), 0]
        return replace(self, rows=torch.cat([self.rows, fillers]).sort().values)

    def among(self, count: int, values: Tensor) -> Tensor:
        """Values of the selected in their places among all `count` completions, 0 elsewhere."""
        found = values.new_zeros(count, *values.shape[1:])
        found[self.rows] = values
        return found


def every(scored: Scored, weights: Tensor, kept: int) -> None:
    """Select nothing, so that all completions are trained on."""


def with_spread(scored: Scored, weights: Tensor, kept: int) -> Selected:  # noqa: ARG001 - a table row
    """The groups whose weighted rewards are not all the same; arXiv 2503.14476 eq. 11."""
    grouped = weighted_sum(scored.rewards, weights).view(-1, scored.group)
    spread = group_spread(grouped).nan_to_num(nan=0.0)
    varies = ~torch.isclose(spread, torch.zeros_like(spread))
    return Selected(rows=varies.flatten().nonzero()[:, 0], group=scored.group)


def shortest(scored: Scored, weights: Tensor, kept: int) -> Selected:  # noqa: ARG001 - a table row
    """The `kept` completions of each group with the fewest tokens; arXiv 2508.09726."""
    return greatest(-scored.token_counts, scored.group, kept)


def most_efficient(scored: Scored, weights: Tensor, kept: int) -> Selected:
    """The `kept` completions of each group with the greatest weighted reward per token."""
    rewards = weighted_sum(scored.rewards, weights)
    per_token = rewards / scored.token_counts.clamp(min=1)
    return greatest(per_token.nan_to_num(nan=-torch.inf), scored.group, kept)


def greatest(values: Tensor, group: int, kept: int) -> Selected:
    """The `kept` greatest values of each group, of equal ones the earlier; in their order."""
    order = values.view(-1, group).argsort(dim=1, descending=True, stable=True)
    starts = torch.arange(0, len(values), group, device=values.device).unsqueeze(1)
    rows = order[:, :kept].sort(1).values + starts
    return Selected(rows=rows.flatten(), group=kept)


@dataclass(frozen=True)
class Selection:
    """A row of `SELECTIONS`: its choice by rewards with these weights; None if it never drops.

    One that `refills` has prompts drawn again until as many completions are selected as a rollout
    has. Where `stays`, completions that are not selected have advantage 0, but count in every mean;
    elsewhere they are dropped. One that `compares` finds nothing in groups of one. `parameters` are
    the settings that it reads and another row may not.
    """

    choose: Callable[[Scored, Tensor, int], Selected | None]
    doc: str
    refills: bool = False
    stays: bool = False
    compares: bool = False
    parameters: tuple[str, ...] = ()


SELECTIONS = {
    "all": Selection(every, "every completion"),
    "varied": Selection(
        with_spread,
        "the groups whose rewards are not all the same",
        compares=True,
        parameters=("selection_reward",),
    ),
    "filled": Selection(
        with_spread,
        "such groups only, of more prompts until the rollout is full",
        refills=True,
        compares=True,
        parameters=("selection_reward", "selection_draws", "selection_fills_up"),
    ),
    "shortest": Selection(
        shortest,
        "the shortest of each group; the others have advantage 0, arXiv 2508.09726",
        stays=True,
        parameters=("selection_kept",),
    ),
    "efficient": Selection(
        most_efficient,
        "those of each group with the most reward per token, likewise",
        stays=True,
        parameters=("selection_reward", "selection_kept"),
    ),
}
