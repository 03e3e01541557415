"""Pairs of a model's own answers to a prompt, one of which its rewards prefer."""

from collections.abc import Iterator, Sequence
from random import Random

from core.collect.rejection import assistant_message, sampled_answers, total_rewards
from core.collect.reward_calls import UncheckedReward
from core.configs.own_pairs import PAIRINGS, Answer, OwnPairsConfig
from core.data.conversations import Row
from core.samplers.policy import PolicySampler
from eval.errors import BadValue


def pair_rows(
    sampler: PolicySampler,
    config: OwnPairsConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
) -> list[dict[str, object]]:
    """Return one row with `chosen` and `rejected` for each prompt whose answers make a pair.

    Of equally good answers the one that was sampled first is taken. In a random `flipped_share` of
    the pairs the two change places, and `flipped` is true.

    Raises:
        BadValue: there is no reward, a prompt is not a single user message, or no prompt has a
            pair.
    """
    sampled_rows, texts = sampled_answers(sampler, config, rewards, rows)
    answers = rewarded_answers(sampler, rewards, sampled_rows, texts)
    choose = PAIRINGS[config.pair_by].choose
    chosen = zip(sampled_rows, map(choose, answers), strict=True)
    pairs = [(row, pair) for row, pair in chosen if pair is not None]
    if not pairs:
        raise BadValue(
            f"none of {len(sampled_rows)} prompts has two answers that pair_by={config.pair_by} "
            "tells apart: sample more, or from a model that answers some of them correctly"
        )
    count = round(config.flipped_share * len(pairs))
    flipped = {*Random(config.seed).sample(range(len(pairs)), count)}
    return [
        pair_row(row, pair, flipped=place in flipped) for place, (row, pair) in enumerate(pairs)
    ]


def rewarded_answers(
    sampler: PolicySampler,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
    texts: Sequence[Sequence[str]],
) -> Iterator[list[Answer]]:
    """Yield the answers of each row with their lengths and rewards."""
    values = total_rewards(sampler, rewards, rows, texts)
    for answers, of_row in zip(texts, values, strict=True):
        ids = sampler.tokenizer(list(answers), add_special_tokens=False)["input_ids"]
        yield [Answer(*row) for row in zip(answers, map(len, ids), of_row, strict=True)]


def pair_row(row: Row, pair: tuple[Answer, Answer], *, flipped: bool) -> dict[str, object]:
    """Return a row with a pair, the better answer chosen unless they are flipped."""
    chosen, rejected = reversed(pair) if flipped else pair
    return {
        **row,
        "chosen": assistant_message(chosen.text),
        "rejected": assistant_message(rejected.text),
        "flipped": flipped,
    }
