"""Which completions of a scored rollout are trained on; nothing is computed for the others."""

from collections.abc import Callable
from dataclasses import dataclass

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
        return Selected(rows=self.rows[:count], group=self.group)

    def among(self, count: int, values: Tensor) -> Tensor:
        """Values of the selected in their places among all `count` completions, 0 elsewhere."""
        found = values.new_zeros(count, *values.shape[1:])
        found[self.rows] = values
        return found


def every(scored: Scored, weights: Tensor) -> None:
    """Select nothing, so that all completions are trained on."""


def with_spread(scored: Scored, weights: Tensor) -> Selected:
    """The groups whose weighted rewards are not all the same; arXiv 2503.14476 eq. 11."""
    grouped = weighted_sum(scored.rewards, weights).view(-1, scored.group)
    spread = group_spread(grouped).nan_to_num(nan=0.0)
    varies = ~torch.isclose(spread, torch.zeros_like(spread))
    return Selected(rows=varies.flatten().nonzero()[:, 0], group=scored.group)


@dataclass(frozen=True)
class Selection:
    """A row of `SELECTIONS`: its choice by rewards with these weights; None if it never drops.

    Where `draws` is more than 1, prompts are drawn again until as many completions are selected as
    a rollout has, so often at most.
    """

    choose: Callable[[Scored, Tensor], Selected | None]
    doc: str
    draws: int = 1


SELECTIONS = {
    "all": Selection(every, "every completion"),
    "varied": Selection(with_spread, "the groups whose rewards are not all the same"),
    "filled": Selection(
        with_spread, "such groups only, of more prompts until the rollout is full", draws=10
    ),
}
