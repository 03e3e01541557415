"""A law of selections: which groups they train on, among all 0/1 rewards of a group."""

from itertools import product

import torch

from core.losses.advantages import normalise
from core.losses.estimators import Scored
from core.losses.selection import SELECTIONS

GROUP = 8
PENALTIES = tuple(-place / 10 for place in range(GROUP))  # of the answers' lengths, all different


def groups_without_signal(selection: str) -> float:
    """Count the selected groups that are all right or all wrong, so that all advantages are 0.

    The rollout has each pattern of right and wrong answers once. The selection is made by
    correctness alone, although a length penalty makes the rewards of each group differ.
    """
    right = torch.tensor(list(product((0.0, 1.0), repeat=GROUP)), dtype=torch.float64)
    penalty = torch.tensor(PENALTIES, dtype=torch.float64).expand_as(right)
    scored = Scored(rewards=torch.stack([right, penalty], -1).view(-1, 2), group=GROUP, length=1)
    by_correctness = scored.only(0)
    selected = SELECTIONS[selection].choose(
        by_correctness, torch.ones(1, dtype=torch.float64), GROUP
    )
    rows = torch.arange(right.numel()) if selected is None else selected.rows
    grouped = by_correctness.rewards[rows, 0].view(-1, GROUP)
    return float((normalise(grouped, "group")[0] == 0).all(1).sum())
