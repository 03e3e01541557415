"""Judges: chances in [0, 1] that are functions of their inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RewardError
from core.rewards import Judged
from eval.errors import BadValue
from eval.judging.judges import CYCLE, JUDGES, BradleyTerry, Brief, Cyclic, InOrder, Truth, kind

ASKED = {"prompts": ["1+2?"], "answer": ["3"]}
RIGHT, HALF, WRONG = r"1+2=3 \boxed{3}", "1+2=3\n\\boxed{4}", r"1+2=4 \boxed{4}"
ANSWERS = st.sampled_from([RIGHT, HALF, WRONG, "", "7", "a longer text"])


@pytest.mark.parametrize(
    ("first", "second", "chance"),
    [(RIGHT, WRONG, 1), (WRONG, RIGHT, 0), (HALF, WRONG, 1), (RIGHT, HALF, 1), (WRONG, WRONG, 0.5)],
)
def test_truth(first, second, chance):
    assert Truth()(first=[first], second=[second], **ASKED) == [chance]


def test_truth_judges_as_the_benchmark_does():
    columns = {"prompts": ["kQ57="] * 2, "answer": ["1[0-9]+4"] * 2}
    own = [{"counts": "whole", "pattern": None, "verbatim": False}] * 2
    pairs = {"first": ["1+4", "1234"], "second": ["1234", "234"]}
    assert Truth()(**pairs, **columns, answers=own) == [0, 1]
    assert Truth()(**pairs, **columns) == [0.5, 0.5]


def test_bradley_terry_is_a_chance_of_rewards():
    judge = BradleyTerry(scale=2.0, labels=None)
    assert judge(first=[RIGHT], second=[HALF], **ASKED) == [
        pytest.approx(1 / (1 + 2.718281828**-1.5))
    ]
    assert judge(first=[RIGHT], second=[WRONG], **ASKED) == [pytest.approx(0.880797)]


def test_labels_of_bradley_terry_have_the_chance_as_their_mean():
    chances = [
        BradleyTerry(scale=1.0, labels=400, seed=seed)(first=[RIGHT], second=[WRONG], **ASKED)[0]
        for seed in range(5)
    ]
    assert len(set(chances)) > 1
    assert sum(chances) / 5 == pytest.approx(0.731059, abs=0.03)


def test_brief():
    assert Brief()(first=["ab", " abc ", "x"], second=["abc", "ab", "y "]) == [1, 0, 0.5]


def test_of_several_judges_the_first_that_sees_a_difference_decides():
    judge = InOrder(Truth(), Brief())
    firsts, seconds = [RIGHT, WRONG, RIGHT, RIGHT], [WRONG, RIGHT, RIGHT + " ", RIGHT + "!!"]
    columns = {"prompts": ["1+2?"] * 4, "answer": ["3"] * 4}
    assert judge(first=firsts, second=seconds, **columns) == [1, 0, 0.5, 1]
    assert judge.required_columns == ("answer",)


def test_no_kind_of_answer_is_best_for_the_cyclic_judge():
    texts = ["3", "1", "2"]  # of kinds 0, 1 and 2
    assert [kind(text) for text in texts] == [0, 1, 2]
    wins = [Cyclic()(first=[text] * 3, second=texts) for text in texts]
    assert wins == [list(row) for row in CYCLE]
    assert all(max(row) > 0.5 > min(row) for row in wins)
    assert kind("") == 0


@given(first=ANSWERS, second=ANSWERS)
@pytest.mark.parametrize("name", JUDGES)
def test_a_swapped_pair_has_the_rest_of_the_chance(name, first, second):
    judge = JUDGES[name]
    chance, other, again = (
        judge(first=[a], second=[b], **ASKED)[0]
        for a, b in ((first, second), (second, first), (first, second))
    )
    assert 0 <= chance <= 1
    assert chance == again
    assert chance + other == pytest.approx(1)


@pytest.mark.parametrize("settings", [{"scale": 0.0}, {"labels": 0}])
def test_settings_of_bradley_terry_are_checked(settings):
    with pytest.raises(BadValue, match="expected scale above 0"):
        BradleyTerry(**settings)


def test_a_reward_of_a_judge_needs_pairs():
    reward = Judged(Brief())
    assert reward(prompts=["a", "a"], completions=["1", "22"]) == [1, 0]
    assert (Judged(Truth()).required_columns, reward.required_columns) == (("answer",), ())
    with pytest.raises(BadValue, match="two completions of each prompt"):
        reward(prompts=["a", "b"], completions=["1", "22"])
    with pytest.raises(RewardError, match=r"judge Brief returned 7 for pair 0 \('a'\)"):
        Judged(wrong)(prompts=["a", "a"], completions=["1", "2"])


def wrong(**_):
    return [7]


wrong.__name__ = "Brief"
