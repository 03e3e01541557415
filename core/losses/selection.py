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


def every(scored: Scored, weights: Tensor) -> Selected:  # noqa: ARG001 - a table row
    """All completions."""
    return Selected(
        rows=torch.arange(len(scored.rewards), device=scored.rewards.device), group=scored.group
    )


def with_spread(scored: Scored, weights: Tensor) -> Selected:
    """The groups whose weighted rewards are not all the same; arXiv 2503.14476 eq. 11."""
    grouped = weighted_sum(scored.rewards, weights).view(-1, scored.group)
    spread = group_spread(grouped).nan_to_num(nan=0.0)
    varies = ~torch.isclose(spread, torch.zeros_like(spread))
    return Selected(rows=varies.flatten().nonzero()[:, 0], group=scored.group)


@dataclass(frozen=True)
class Selection:
    """A row of `SELECTIONS`: its choice from all completions, by rewards with these weights."""

    choose: Callable[[Scored, Tensor], Selected]
    doc: str
    drops: bool = True


SELECTIONS = {
    "all": Selection(every, "every completion", drops=False),
    "varied": Selection(with_spread, "the groups whose rewards are not all the same"),
}
