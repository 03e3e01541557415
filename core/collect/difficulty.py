"""Selection of the prompts that a model answers correctly neither too rarely nor too often."""

from collections.abc import Sequence

from core.collect.rejection import sampled_answers, total_rewards
from core.collect.reward_calls import UncheckedReward
from core.data.conversations import Row
from core.preparations.difficulty import DifficultyConfig
from core.samplers.policy import PolicySampler
from eval.errors import BadValue


def rows_of_difficulty(
    sampler: PolicySampler,
    config: DifficultyConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
) -> list[dict[str, object]]:
    """Return the rows of the selected prompts, in order, with their `pass_rate`.

    The pass rate is the share of correct answers, whose rewards sum to more than 0.

    Raises:
        BadValue: there is no reward, a prompt is not a single user message, or no prompt is
            selected.
    """
    sampled_rows, answers = sampled_answers(sampler, config, rewards, rows)
    values = total_rewards(sampler, rewards, sampled_rows, answers)
    rates = [sum(value > 0 for value in of_row) / len(of_row) for of_row in values]
    selected = [
        {**row, "pass_rate": rate}
        for row, rate in zip(sampled_rows, rates, strict=True)
        if config.rate_above < rate <= config.rate_at_most
    ]
    if not selected:
        raise BadValue(
            f"none of {len(sampled_rows)} prompts has a pass rate above {config.rate_above:g} and "
            f"at most {config.rate_at_most:g}: found pass rates from {min(rates):g} to "
            f"{max(rates):g}; widen the bounds or take another model"
        )
    return selected
