"""Selections of completions of a scored rollout; the other completions get no gradient."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from core.losses.advantages import group_spread, weighted_sum
from core.losses.estimators import Scored


@dataclass(frozen=True, kw_only=True)
class Selected:
    """Indices (M,) of the selected completions, which are whole groups of size `group`."""

    rows: Tensor
    group: int

    def first(self, count: int) -> "Selected":
        """Return at most the first `count` of the selected completions."""
        return replace(self, rows=self.rows[:count])

    def fill_up(self, size: int, count: int) -> "Selected":
        """Add the first unselected of `count` completions until there are `size`."""
        unselected = torch.ones(count, dtype=torch.bool, device=self.rows.device)
        unselected[self.rows] = False
        fillers = unselected.nonzero()[: max(0, size - len(self.rows)), 0]
        return replace(self, rows=torch.cat([self.rows, fillers]).sort().values)

    def scatter(self, count: int, values: Tensor) -> Tensor:
        """Scatter values (M, ...) of the selected to (count, ...), with 0 elsewhere."""
        scattered = values.new_zeros(count, *values.shape[1:])
        scattered[self.rows] = values
        return scattered


def has_hint(successes: Tensor, group: int, feedback: Tensor) -> Tensor:
    """Return whether each completion can be judged with more than its prompt; bool (N,).

    It can if another completion of its group succeeded, or if it has feedback of its own;
    arXiv 2601.20802 s3.

    Args:
        successes: bool (N,), whole groups one after the other.
        group: Completions of a group.
        feedback: bool (N,), whether a completion has feedback.
    """
    grouped = successes.long().view(-1, group)
    others = grouped.sum(1, keepdim=True) - grouped
    return (others > 0).flatten() | feedback


def select_all(scored: Scored, weights: Tensor, per_group: int) -> None:
    """Return None: all completions are trained on."""


def select_varied(scored: Scored, weights: Tensor, per_group: int) -> Selected:  # noqa: ARG001 - a table row
    """Select the groups whose weighted rewards are not all equal; arXiv 2503.14476 eq. 11."""
    grouped = weighted_sum(scored.rewards, weights).view(-1, scored.group)
    spread = group_spread(grouped).nan_to_num(nan=0.0)
    varies = ~torch.isclose(spread, torch.zeros_like(spread))
    return Selected(rows=varies.flatten().nonzero()[:, 0], group=scored.group)


def select_shortest(scored: Scored, weights: Tensor, per_group: int) -> Selected:  # noqa: ARG001 - a table row
    """Select the `per_group` completions with the fewest tokens of each group; arXiv 2508.09726."""
    return select_greatest(-scored.token_counts, scored.group, per_group)


def select_most_efficient(scored: Scored, weights: Tensor, per_group: int) -> Selected:
    """Select the `per_group` completions of each group with the greatest reward per token."""
    rewards = weighted_sum(scored.rewards, weights)
    per_token = rewards / scored.token_counts.clamp(min=1)
    return select_greatest(per_token.nan_to_num(nan=-torch.inf), scored.group, per_group)


def select_greatest(values: Tensor, group: int, per_group: int) -> Selected:
    """Select the `per_group` greatest values of each group, in their original order.

    Of equal values the earlier one is preferred.
    """
    order = values.view(-1, group).argsort(dim=1, descending=True, stable=True)
    starts = torch.arange(0, len(values), group, device=values.device).unsqueeze(1)
    rows = order[:, :per_group].sort(1).values + starts
    return Selected(rows=rows.flatten(), group=per_group)


@dataclass(frozen=True)
class Selection:
    """A row of `SELECTIONS`: a function that selects completions by reward, and its properties.

    Attributes:
        choose: Maps rewards, weights and completions per group to the selection; None selects all.
        doc: One line of documentation.
        refills: Whether more prompts are drawn until the selected completions fill a rollout.
        stays: Whether unselected completions remain with advantage 0 and count in every mean.
            Otherwise they are dropped.
        compares: Whether it compares completions of a group, so that groups of one make no sense.
        parameters: Names of the settings that have an effect with this selection.
    """

    choose: Callable[[Scored, Tensor, int], Selected | None]
    doc: str
    refills: bool = False
    stays: bool = False
    compares: bool = False
    parameters: tuple[str, ...] = ()


SELECTIONS = {
    "all": Selection(select_all, "every completion"),
    "varied": Selection(
        select_varied,
        "the groups whose rewards are not all the same",
        compares=True,
        parameters=("selection_reward",),
    ),
    "filled": Selection(
        select_varied,
        "those groups, with more prompts drawn until the rollout is full",
        refills=True,
        compares=True,
        parameters=("selection_reward", "selection_draws", "selection_fills_up"),
    ),
    "shortest": Selection(
        select_shortest,
        "the shortest of each group; the others have advantage 0, arXiv 2508.09726",
        stays=True,
        parameters=("selection_kept",),
    ),
    "efficient": Selection(
        select_most_efficient,
        "those with the most reward per token of each group; the others have advantage 0",
        stays=True,
        parameters=("selection_reward", "selection_kept"),
    ),
}
