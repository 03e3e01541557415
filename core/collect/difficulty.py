"""Keeps the prompts that a model answers right neither too seldom nor too often."""

from collections.abc import Callable, Sequence
from typing import Any

from core.collect.rejection import Row, sampled_answers, total_rewards
from core.configs.difficulty import DifficultyConfig
from core.rollout.samplers.policy import PolicySampler
from eval.errors import BadValue


def rows_of_difficulty(
    sampler: PolicySampler,
    config: DifficultyConfig,
    rewards: Sequence[Callable[..., Any]],
    rows: Sequence[Row],
) -> list[dict[str, Any]]:
    """Rows of the prompts in their order, with the share of right answers as their `pass_rate`.

    An answer is right if its rewards sum to more than 0.

    Raises:
        BadValue: there is no reward, a prompt is more than one user turn, or nothing is kept.
    """
    asked, answers = sampled_answers(sampler, config, rewards, rows)
    pairs = [(row, text) for row, texts in zip(asked, answers, strict=True) for text in texts]
    values = iter(total_rewards(sampler, rewards, pairs))
    rates = [sum(next(values) > 0 for _ in texts) / len(texts) for texts in answers]
    kept = [
        {**row, "pass_rate": rate}
        for row, rate in zip(asked, rates, strict=True)
        if config.rate_above < rate <= config.rate_at_most
    ]
    if not kept:
        raise BadValue(
            f"no prompt of {len(asked)} has more than {config.rate_above:g} and at most "
            f"{config.rate_at_most:g} of its answers right: found shares from {min(rates):g} to "
            f"{max(rates):g}, widen the bounds or take another model"
        )
    return kept
