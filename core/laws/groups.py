"""Which groups a selection trains on, among all right and wrong answers that a group can have."""

from itertools import product

import torch

from core.losses.advantages import normalise
from core.losses.estimators import Scored
from core.losses.selection import SELECTIONS

GROUP = 8
PENALTIES = tuple(-place / 10 for place in range(GROUP))  # of the answers' lengths, all different


def groups_without_signal(selection: str) -> float:
    """How many selected groups are all right or all wrong, so that no answer beats another.

    The rollout holds each pattern of right and wrong once, and is judged by correctness alone,
    although a penalty gives every group a spread of rewards.
    """
    right = torch.tensor(list(product((0.0, 1.0), repeat=GROUP)), dtype=torch.float64)
    penalty = torch.tensor(PENALTIES, dtype=torch.float64).expand_as(right)
    scored = Scored(rewards=torch.stack([right, penalty], -1).view(-1, 2), group=GROUP, length=1)
    judged = scored.only(0)
    found = SELECTIONS[selection].choose(judged, torch.ones(1, dtype=torch.float64), GROUP)
    rows = torch.arange(right.numel()) if found is None else found.rows
    grouped = judged.rewards[rows, 0].view(-1, GROUP)
    return float((normalise(grouped, "group")[0] == 0).all(1).sum())
