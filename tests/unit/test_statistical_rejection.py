"""Statistical rejection sampling beside its definition, and pairs of what it accepts."""

from collections import Counter
from math import fsum, inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.collect.own_pairs import accepted_answers
from core.collect.statistical_rejection import acceptance, accepted_places
from core.laws.rejection_sampling import accepted_reward, mean_accepted, outcomes
from core.preparations.own_pairs import PAIRINGS, Answer, OwnPairsConfig
from core.rewards import SymbolAccuracy
from eval.errors import BadValue

EXAMPLE = (0.2, 1.0, 1.4, 0.5)  # of arXiv 2309.06657's card, beta 0.5
REWARDS = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=6)


def config(**changes):
    quiet = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    return OwnPairsConfig(**quiet | {"num_prompts": 4, "num_generations": 8} | changes)


def test_worked_example_of_the_chances_of_acceptance():
    found = [acceptance(reward, max(EXAMPLE), 0.5) for reward in EXAMPLE]
    assert found == pytest.approx([0.090718, 0.449329, 1.0, 0.165299], abs=1e-6)


@given(rewards=REWARDS, count=st.integers(1, 8), seed=st.integers(0, 9))
def test_a_beta_of_0_accepts_the_best_and_an_infinite_one_the_first(rewards, count, seed):
    random = Random(seed)

    def draws(chance):
        return random.random() < chance

    best = accepted_places(rewards, 0.0, count, draws)
    assert [rewards[place] for place in best] == sorted(rewards, reverse=True)[:count]
    assert accepted_places(rewards, inf, count, draws) == [*range(len(rewards))][:count]
    some = accepted_places(rewards, 0.3, count, draws)
    assert len({*some}) == len(some) == min(count, len(rewards))


@settings(deadline=None)
@given(rewards=REWARDS.filter(lambda rewards: len(rewards) < 5), beta=st.sampled_from([0.3, 2.0]))
def test_outcomes_have_the_frequencies_of_draws(rewards, beta):
    random = Random(0)
    count, tries = min(2, len(rewards)), 4000
    chances = Counter[tuple[int, ...]]()
    for chance, places in outcomes(rewards, beta, count):
        chances[tuple(places)] += chance
    assert fsum(chances.values()) == pytest.approx(1)
    drawn = Counter(
        tuple(accepted_places(rewards, beta, count, lambda chance: random.random() < chance))
        for _ in range(tries)
    )
    for places, chance in chances.items():
        assert drawn[places] / tries == pytest.approx(chance, abs=0.04)


@given(rewards=REWARDS.filter(lambda rewards: len(rewards) < 5))
def test_accepted_rewards_lie_between_those_of_the_first_and_of_the_best(rewards):
    count = min(2, len(rewards))
    best = sorted(rewards, reverse=True)[:count]
    assert mean_accepted(rewards, 0.0, count) == pytest.approx(sum(best) / count)
    assert mean_accepted(rewards, inf, count) == pytest.approx(sum(rewards[:count]) / count)
    assert mean_accepted(rewards, 0.4, count) <= sum(best) / count + 1e-12


def test_the_mean_reward_of_accepted_candidates_falls_with_beta():
    columns = zip(*(accepted_reward(beta=beta) for beta in (0.0, 0.05, 0.5, 5.0, inf)), strict=True)
    for column in columns:
        assert [*column] == sorted(column, reverse=True)


ANSWERS = [Answer(f"{number}", 1, reward) for number, reward in enumerate((0.0, 0.5, 0.2) * 2)]


def test_pairs_are_made_of_accepted_answers_alone():
    assert accepted_answers(ANSWERS, config(), Random(0)) == ANSWERS
    best = config(rejection_beta=0.0, num_accepted=3)
    found = accepted_answers(ANSWERS, best, Random(0))
    assert [answer.reward for answer in found] == [0.5, 0.5, 0.2]
    assert PAIRINGS["reward"].choose(found) == (ANSWERS[1], ANSWERS[2])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6))
def test_a_pair_by_order_is_of_the_first_two_that_differ(rewards):
    answers = [answer_of(reward, place) for place, reward in enumerate(rewards)]
    pair = PAIRINGS["order"].choose(answers)
    assert (pair is None) == (len({*rewards}) == 1)
    if pair is not None:
        places = sorted(answers.index(answer) for answer in pair)
        assert places[0] == 0
        assert {*rewards[: places[1]]} == {rewards[0]} != {rewards[places[1]]}
        assert pair[0].reward > pair[1].reward


def answer_of(reward, place):
    return Answer(str(place), 1, reward)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"num_accepted": 4}, "no effect without rejection_beta"),
        ({"rejection_beta": 0.5}, "no effect with num_accepted=8 of num_generations=8"),
        ({"rejection_beta": -0.1}, "expected at least 0"),
        ({"rejection_beta": 0.5, "num_accepted": 1}, "expected at least 2"),
    ],
)
def test_rejection_that_would_not_act_is_refused(changes, line):
    with pytest.raises(BadValue, match=line):
        config(**changes)


def test_symbol_accuracy_is_the_share_of_right_places():
    answer = "[37][12][90][45]"
    texts = ["3105", "9999", "31", "310455", "1"]
    found = SymbolAccuracy()(completions=texts, answer=[answer] * len(texts))
    assert found == pytest.approx([1.0, 0.25, 0.5, 4 / 6, 0.0])
    with pytest.raises(BadValue, match="expected a character class a symbol"):
        SymbolAccuracy()(completions=["1"], answer=["1"])
