"""Optimal values of prompts, estimated from the rewards of a model's own answers."""

from collections.abc import Sequence

import torch

from core.collect.rejection import sampled_answers, total_rewards
from core.collect.reward_calls import UncheckedReward
from core.data.conversations import Row
from core.losses.regression import optimal_values
from core.preparations.optimal_value import OptimalValueConfig
from core.samplers.policy import PolicySampler
from eval.errors import BadValue


def rows_of_values(
    sampler: PolicySampler,
    config: OptimalValueConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
) -> list[dict[str, object]]:
    """Return the rows of the prompts, in order, with their `optimal_value`.

    Raises:
        BadValue: there is no reward, a prompt is not a single user message, or no prompt remains
            after those without a rewarded answer are dropped.
    """
    sampled_rows, answers = sampled_answers(sampler, config, rewards, rows)
    by_prompt = torch.tensor(
        total_rewards(sampler, rewards, sampled_rows, answers), dtype=torch.float64
    )
    values = optimal_values(by_prompt, config.beta1).tolist()
    wrong = by_prompt.sum(1).eq(0).tolist()
    selected = [
        {**row, "optimal_value": value}
        for row, value, never in zip(sampled_rows, values, wrong, strict=True)
        if not (never and config.filter_all_incorrect)
    ]
    if not selected:
        raise BadValue(
            f"none of {len(sampled_rows)} prompts has an answer with a reward: set "
            "filter_all_incorrect=False, or take another model"
        )
    return selected
