"""Metrics of correct and incorrect answers: their lengths, and groups of one kind."""

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
    """Return 1 where a completion is correct, else 0; NaN where no reward function scored it.

    A completion is correct if the reward `judge` is positive. Without a judge the reward named
    accuracy decides, or the weighted sum of all rewards if there is none.
    """
    name = judge or ACCURACY
    if names.count(name) == 1:
        place = names.index(name)
        rewards, weights = rewards[:, place : place + 1], torch.ones_like(weights[:1])
    return correct_coefficient(rewards, weights).where(~rewards.isnan().all(1), torch.nan)


def outcome_metrics(right: N, lengths: Tensor, group: int) -> Metrics:
    """Return the mean lengths of right and wrong completions, and the shares of groups of one kind.

    A mean length is left out if there are no such completions.
    """
    kinds = {"right": right == 1, "wrong": right == 0}
    whole_groups = {kind: chosen.view(-1, group).all(1) for kind, chosen in kinds.items()}
    return {
        **{
            f"completions/{kind}_mean_length": lengths[chosen].float().mean().item()
            for kind, chosen in kinds.items()
            if chosen.any()
        },
        **{
            f"frac_all_{kind}": groups.float().mean().item()
            for kind, groups in whole_groups.items()
        },
    }


def repetition(completion_ids: Sequence[Sequence[int]]) -> float:
    """Return the mean share of 3-grams of a completion that occurred in it before.

    There must be at least one completion.
    """
    return sum(-REPEATED.of(ids) for ids in completion_ids) / len(completion_ids)
