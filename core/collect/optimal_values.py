"""What the best policy near a model would be paid for each prompt, from the model's own answers."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from core.collect.rejection import Row, sampled_answers, total_rewards
from core.configs.optimal_value import OptimalValueConfig
from core.losses.regression import optimal_values
from core.rollout.samplers.policy import PolicySampler
from eval.errors import BadValue


def rows_of_values(
    sampler: PolicySampler,
    config: OptimalValueConfig,
    rewards: Sequence[Callable[..., Any]],
    rows: Sequence[Row],
) -> list[dict[str, Any]]:
    """The prompts in their order, with their `optimal_value`.

    Raises:
        BadValue: there is no reward, a prompt is more than one user turn, or none is ever answered
            right where those are dropped.
    """
    asked, answers = sampled_answers(sampler, config, rewards, rows)
    pairs = [(row, text) for row, texts in zip(asked, answers, strict=True) for text in texts]
    paid = torch.tensor(total_rewards(sampler, rewards, pairs), dtype=torch.float64)
    by_prompt = paid.view(len(asked), -1)
    values = optimal_values(by_prompt, config.beta1).tolist()
    wrong = by_prompt.sum(1).eq(0).tolist()
    kept = [
        {**row, "optimal_value": value}
        for row, value, never in zip(asked, values, wrong, strict=True)
        if not (never and config.filter_all_incorrect)
    ]
    if not kept:
        raise BadValue(
            f"none of {len(asked)} prompts has an answer with a reward: set "
            "filter_all_incorrect=False, or take another model"
        )
    return kept
