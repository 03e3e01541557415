"""Rejection sampling: a model's own answers to prompts, of which rewards keep the good ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.collect.event_loop import AsyncLoop
from core.collect.reward_calls import RewardFunction, Samples, call_rewards, outcome
from core.configs.answers import AnswersConfig
from core.configs.rejection import RejectionConfig
from core.rewards.verifiers import spread
from core.rollout.chat import chat_text
from core.rollout.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding

Row = Mapping[str, Any]  # Any: columns of any type


def accepted_rows(
    sampler: PolicySampler,
    config: RejectionConfig,
    rewards: Sequence[Callable[..., Any]],
    rows: Sequence[Row],
) -> list[dict[str, Any]]:
    """Rows of prompts that have an accepted answer, each answer once as its `completion`.

    The best answers of a prompt come first, the earlier sampled of equal ones.

    Raises:
        BadValue: there is no reward, a prompt is more than one user turn, or nothing is accepted.
    """
    asked, answers = sampled_answers(sampler, config, rewards, rows)
    distinct = [list(dict.fromkeys(texts)) for texts in answers]
    pairs = [(row, text) for row, texts in zip(asked, distinct, strict=True) for text in texts]
    values = iter(total_rewards(sampler, rewards, pairs))
    kept: list[dict[str, Any]] = []
    for row, texts in zip(asked, distinct, strict=True):
        paid = sorted(((next(values), text) for text in texts), key=lambda each: -each[0])
        good = [text for value, text in paid if value >= config.least_reward]
        kept += [{**row, "completion": turn(text)} for text in good[: config.kept_per_prompt]]
    if not kept:
        raise BadValue(
            f"none of {len(pairs)} answers has a reward of at least {config.least_reward:g}: "
            "lower least_reward, or sample from a better model"
        )
    return kept


def sampled_answers(
    sampler: PolicySampler,
    config: AnswersConfig,
    rewards: Sequence[Callable[..., Any]],
    rows: Sequence[Row],
) -> tuple[Sequence[Row], list[list[str]]]:
    """The rows that are asked, spread over all of them, and the answers to each.

    Raises:
        BadValue: there is no reward, or a prompt is more than one user turn.
    """
    if not rewards:
        raise BadValue("there is no reward to judge answers by: name one in rewards")
    asked = spread(rows, config.num_prompts or len(rows))
    found = sampler([user_turn(row["prompt"]) for row in asked], decoding_of(config))
    return asked, [[one.text for one in answers] for answers in found]


def total_rewards(
    sampler: PolicySampler, rewards: Sequence[Callable[..., Any]], pairs: Sequence[tuple[Row, str]]
) -> list[float]:
    """The sum of the rewards of each answer; where one does not apply it adds nothing."""
    functions = [RewardFunction.of(reward) for reward in rewards]
    ids: list[list[int]] = [
        sampler.tokenizer(text, add_special_tokens=False)["input_ids"] for _, text in pairs
    ]
    answers = [turn(text) for _, text in pairs]
    prompts = None
    if any(f.reads_prompt_texts for f in functions):
        prompts = [chat_text(sampler.tokenizer, user_turn(row["prompt"])) for row, _ in pairs]
    samples = Samples.of([dict(row) for row, _ in pairs], answers, ids, prompts)
    columns = [map(outcome, values) for values in call_rewards(functions, samples, {}, AsyncLoop())]
    return [sum(v for v in values if v == v) for values in zip(*columns, strict=True)]  # NaN: none


def decoding_of(config: AnswersConfig) -> Decoding:
    """How the answers are drawn."""
    return Decoding(
        samples=config.num_generations,
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_completion_length,
        seed=config.seed,
    )


def user_turn(prompt: object) -> str:
    """What the user says in a prompt of one turn.

    Raises:
        BadValue: it is a text, or a conversation of several turns.
    """
    match prompt:
        case [{"role": "user", "content": str(text)}]:
            return text
        case _:
            raise BadValue(f"prompt {prompt!r:.80}: expected one turn of the user to sample from")


def turn(text: str) -> list[dict[str, str]]:
    """An answer as the assistant's turn."""
    return [{"role": "assistant", "content": text}]
