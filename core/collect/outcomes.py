"""What is logged of right and wrong answers: how long they are, and groups that are of one kind."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.collect.metrics import Metrics
from core.losses.advantages import correct_coefficient
from core.rewards.repetition import RepetitionPenalty
from core.shapes import NF, N

ACCURACY = "accuracy"  # the name of the reward that says what is right
REPEATED = RepetitionPenalty(ngram_size=3, max_penalty=-1.0)


def right_answers(rewards: NF, weights: Tensor, names: Sequence[str], judge: str | None) -> N:
    """1 where a completion is right, else 0; NaN where nothing scored it.

    Right is what the reward named `judge` pays for, else the one that is called accuracy, else all
    of them together.
    """
    name = judge or ACCURACY
    if names.count(name) == 1:
        place = names.index(name)
        rewards, weights = rewards[:, place : place + 1], torch.ones_like(weights[:1])
    return correct_coefficient(rewards, weights).where(~rewards.isnan().all(1), torch.nan)


def outcome_metrics(right: N, lengths: Tensor, group: int) -> Metrics:
    """Mean lengths of right and of wrong completions, where there are any; groups of one kind."""
    kinds = {"right": right == 1, "wrong": right == 0}
    of_groups = {kind: chosen.view(-1, group).all(1) for kind, chosen in kinds.items()}
    return {
        **{
            f"completions/{kind}_mean_length": lengths[chosen].float().mean().item()
            for kind, chosen in kinds.items()
            if chosen.any()
        },
        **{f"frac_all_{kind}": every.float().mean().item() for kind, every in of_groups.items()},
    }


def repetition(completion_ids: Sequence[Sequence[int]]) -> float:
    """Mean share of the 3-grams of a completion that stood in it before."""
    return sum(-REPEATED.of(ids) for ids in completion_ids) / len(completion_ids)
