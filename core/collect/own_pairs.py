"""Pairs of a model's own answers to a prompt, one of which its rewards prefer."""

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean

from core.collect.rejection import assistant_message, sampled_answers, total_rewards
from core.collect.reward_calls import UncheckedReward
from core.collect.statistical_rejection import accepted_places
from core.data.conversations import Row
from core.data.pairs import ANSWERS, GOLD
from core.data.unpaired import is_empty
from core.losses.preference import WIN_COLUMNS
from core.preparations.own_pairs import PAIRINGS, Answer, OwnPairsConfig
from core.samplers.policy import PolicySampler
from eval.errors import BadValue

PAIRED = (*ANSWERS, "flipped")  # columns of a pair that a labelled answer lacks


def pair_rows(
    sampler: PolicySampler,
    config: OwnPairsConfig,
    rewards: Sequence[UncheckedReward],
    rows: Sequence[Row],
    *,
    with_gold: bool = False,
) -> list[dict[str, object]]:
    """Return one row with `chosen` and `rejected` for each prompt whose answers make a pair.

    Of equally good answers the one that was sampled first is taken. With `rejection_beta` pairs are
    made of the answers that statistical rejection sampling accepts, arXiv 2309.06657. In a random
    `flipped_share` of the pairs the two change places, and `flipped` is true. Shuffled rejected
    answers are answers to `rejected_prompt`. `with_gold` adds `reference`, an answer of a third
    text that is as good as the better one; prompts without such an answer are left out.

    Raises:
        BadValue: there is no reward, a prompt is not a single user message, or no prompt has a
            pair.
    """
    sampled_rows, texts = sampled_answers(sampler, config, rewards, rows)
    answers = rewarded_answers(sampler, rewards, sampled_rows, texts)
    random = Random(config.seed)
    made = [
        pair_row(row, found, of_row if config.win_rates else ())
        for row, of_row in zip(sampled_rows, answers, strict=True)
        if (
            found := chosen_answers(
                accepted_answers(of_row, config, random), config.pair_by, with_gold=with_gold
            )
        )
    ]
    if not made:
        gold = ", and another right one" if with_gold else ""
        raise BadValue(
            f"none of {len(sampled_rows)} prompts has two answers that pair_by={config.pair_by} "
            f"tells apart{gold}: sample more, or from a model that answers some of them correctly"
        )
    flipped = {*random.sample(range(len(made)), round(config.flipped_share * len(made)))}
    pairs = [flip(row) if place in flipped else row for place, row in enumerate(made)]
    return shuffle_rejected(pairs, random) if config.shuffles_rejected else pairs


def accepted_answers(
    answers: Sequence[Answer], config: OwnPairsConfig, random: Random
) -> Sequence[Answer]:
    """Return the answers of a prompt that rejection sampling accepts; all without it."""
    if config.rejection_beta is None:
        return answers
    rewards = [answer.reward for answer in answers]
    places = accepted_places(
        rewards, config.rejection_beta, config.num_accepted, lambda chance: random.random() < chance
    )
    return [answers[place] for place in places]


def chosen_answers(
    answers: Sequence[Answer], pair_by: str, *, with_gold: bool
) -> tuple[Answer, ...]:
    """Return the better and the worse answer of a prompt, and a gold one; empty if one is missing.

    The gold answer is the first of a third text that is as good as the better one.
    """
    pair = PAIRINGS[pair_by].choose(answers)
    if pair is None or not with_gold:
        return pair or ()
    texts = {answer.text for answer in pair}
    other_texts = [answer for answer in answers if answer.text not in texts]
    gold = next((answer for answer in other_texts if answer.reward >= pair[0].reward), None)
    return () if gold is None else (*pair, gold)


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


def pair_row(row: Row, found: tuple[Answer, ...], samples: Sequence[Answer]) -> dict[str, object]:
    """Return a row with a pair, the better answer chosen, and the gold answer if one is found.

    With `samples` it has the chance of each answer to win against one of them: to have the higher
    reward, or half of the chance of an equal one.
    """
    chosen, rejected, *gold = (assistant_message(answer.text) for answer in found)
    return {
        **row,
        "chosen": chosen,
        "rejected": rejected,
        "flipped": False,
        **({GOLD: gold[0]} if gold else {}),
        **{
            name: fmean(
                (answer.reward > s.reward) + (answer.reward == s.reward) / 2 for s in samples
            )
            for name, answer in zip(WIN_COLUMNS, found, strict=False)
            if samples
        },
    }


def flip(row: Row) -> dict[str, object]:
    """Return a row whose two answers have changed places, which `flipped` says."""
    turned = {
        name: row[other]
        for names in (ANSWERS, WIN_COLUMNS)
        for name, other in zip(names, reversed(names), strict=True)
        if other in row
    }
    return {**row, **turned, "flipped": True}


def shuffle_rejected(rows: Sequence[Row], random: Random) -> list[dict[str, object]]:
    """Return rows whose rejected answer is that of another row, in a random circle of all rows."""
    order = random.sample(range(len(rows)), len(rows))
    source = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    return [
        {**row, "rejected": other["rejected"], "rejected_prompt": other["prompt"]}
        for row, other in ((row, rows[source[place]]) for place, row in enumerate(rows))
    ]


def labelled_answers(
    rows: Sequence[Row], desirable_share: float, random: Random
) -> list[dict[str, object]]:
    """Return the answers of pairs as rows of a completion and its label, true for chosen ones.

    All rejected answers are kept, and a random `desirable_share` of the chosen ones, but for empty
    answers, which labelled data may not have.
    """
    kept = {*random.sample(range(len(rows)), round(desirable_share * len(rows)))}
    return [
        {
            **{key: row[key] for key in row if key not in PAIRED},
            "completion": row[name],
            "label": label,
        }
        for place, row in enumerate(rows)
        for name, label in zip(ANSWERS, (True, False), strict=True)
        if (place in kept or not label) and not is_empty(row[name])
    ]
