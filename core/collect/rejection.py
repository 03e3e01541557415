"""Rejection sampling: a model's own answers to prompts, filtered by their rewards."""

from collections.abc import Sequence
from itertools import islice

from core.collect.event_loop import AsyncLoop
from core.collect.reward_calls import (
    RewardFunction,
    Samples,
    UncheckedReward,
    call_rewards,
    outcome_reward,
)
from core.data.conversations import Row
from core.preparations.rejection import RejectionConfig
from core.preparations.sampled_answers import AnswersConfig
from core.rewards.verifiers import spread
from core.rollout.chat import chat_text
from core.samplers.policy import PolicySampler
from eval.errors import BadValue
from eval.samples.evaluation import Decoding, Sampler


def accepted_rows(
    sampler: PolicySampler,
    config: RejectionConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
    answerer: Sampler | None = None,
) -> list[dict[str, object]]:
    """Return one row for each accepted answer of a prompt, with the answer as its `completion`.

    Equal answers of a prompt count once. Its answers are sorted by reward, and by time of sampling
    if the rewards are equal. The `answerer`, by default the sampler itself, writes the answers.

    Raises:
        BadValue: there is no reward, a prompt is not a single user message, or no answer is
            accepted.
    """
    sampled_rows, answers = sampled_answers(answerer or sampler, config, rewards, rows)
    distinct = [list(dict.fromkeys(texts)) for texts in answers]
    values = total_rewards(sampler, rewards, sampled_rows, distinct)
    accepted: list[dict[str, object]] = []
    for row, texts, of_row in zip(sampled_rows, distinct, values, strict=True):
        rewarded = sorted(zip(of_row, texts, strict=True), key=lambda pair: -pair[0])
        accepted_texts = [text for value, text in rewarded if value >= config.least_reward]
        accepted += [
            {**row, "completion": assistant_message(text)}
            for text in accepted_texts[: config.kept_per_prompt]
        ]
    if not accepted:
        raise BadValue(
            f"none of {sum(map(len, distinct))} answers has a reward of at least "
            f"{config.least_reward:g}: lower least_reward, or sample from a better model"
        )
    return accepted


def sampled_answers(
    sampler: Sampler,
    config: AnswersConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
) -> tuple[Sequence[Row], list[list[str]]]:
    """Sample answers to `num_prompts` rows, spread evenly; return the rows and their answers.

    Raises:
        BadValue: there is no reward, or a prompt is not a single user message.
    """
    if not rewards:
        raise BadValue("there is no reward to judge answers by: name one in rewards")
    sampled_rows = spread(rows, config.num_prompts or len(rows))
    samples = sampler([user_message(row["prompt"]) for row in sampled_rows], decoding(config))
    return sampled_rows, [[sample.text for sample in answers] for answers in samples]


def total_rewards(
    sampler: PolicySampler,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
    answers: Sequence[Sequence[str]],
) -> list[list[float]]:
    """Return the sum of the rewards of each answer of each row.

    A reward that does not apply adds 0.
    """
    pairs = [(row, text) for row, texts in zip(rows, answers, strict=True) for text in texts]
    functions = [RewardFunction.of(reward) for reward in rewards]
    samples = reward_samples(sampler, functions, pairs)
    columns = [
        map(outcome_reward, values) for values in call_rewards(functions, samples, {}, AsyncLoop())
    ]
    sums = (sum(v for v in values if v == v) for values in zip(*columns, strict=True))  # NaN: none
    return [list(islice(sums, len(texts))) for texts in answers]


def reward_samples(
    sampler: PolicySampler, functions: Sequence[RewardFunction], pairs: Sequence[tuple[Row, str]]
) -> Samples:
    """Return the keywords of reward calls for pairs of a row and an answer."""
    ids: list[list[int]] = [
        sampler.tokenizer(text, add_special_tokens=False)["input_ids"] for _, text in pairs
    ]
    answers = [assistant_message(text) for _, text in pairs]
    prompts = None
    if any(f.reads_prompt_texts for f in functions):
        prompts = [chat_text(sampler.tokenizer, user_message(row["prompt"])) for row, _ in pairs]
    return Samples.of([row for row, _ in pairs], answers, ids, prompts)


def decoding(config: AnswersConfig) -> Decoding:
    """Return the options of sampling the answers."""
    return Decoding(
        samples=config.num_generations,
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_completion_length,
        seed=config.seed,
    )


def user_message(prompt: object) -> str:
    """Return the text of a prompt that is a single user message.

    Raises:
        BadValue: the prompt is plain text or has several messages.
    """
    match prompt:
        case [{"role": "user", "content": str(text)}]:
            return text
        case _:
            raise BadValue(f"prompt {prompt!r:.80}: expected one turn of the user to sample from")


def assistant_message(text: str) -> list[dict[str, str]]:
    """Wrap text as a chat message with role "assistant"."""
    return [{"role": "assistant", "content": text}]
