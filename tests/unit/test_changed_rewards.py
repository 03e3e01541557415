"""Rewards that change another one: wrong at a rate, or on another scale."""

from types import SimpleNamespace

import pytest

from core.rewards import Accuracy, Flipped, LengthWithin, Scaled
from eval.errors import BadValue


def right(completions, **_):
    return [1.0] * len(completions)


def unknown(completions, **_):
    return [None] * len(completions)


def flips(count, share=0.2, step=3, reward=right):
    columns = {"prompts": ["p"] * count, "completions": ["same text"] * count}
    state = SimpleNamespace(global_step=step)
    return Flipped(reward, share)(**columns, trainer_state=state)


def test_a_share_of_the_values_is_exchanged_each_drawn_for_itself():
    """Of 10,000 draws at 0.2 the share lies within 4 errors of 0.004; 6 in 100,000 do not."""
    values = flips(10_000)
    assert {*values} == {0.0, 1.0}
    assert values.count(0.0) / 10_000 == pytest.approx(0.2, abs=0.016)


def test_a_step_has_the_same_draws_again_and_another_step_has_others():
    assert flips(200) == flips(200)
    assert flips(200) != flips(200, step=4)
    assert flips(3, reward=unknown) == [None] * 3


def test_a_scaled_reward_is_multiplied_before_anything_else():
    reward = Scaled(LengthWithin(3), 10.0)
    assert reward(completion_ids=[[1], [1] * 4], completions=["a", "b"]) == [10.0, 0.0]
    assert reward.__name__ == "scaled_length_within"


@pytest.mark.parametrize("make", [lambda: Flipped(Accuracy(), 1.0), lambda: Flipped(Accuracy(), 0)])
def test_a_share_of_none_or_all_is_refused(make):
    with pytest.raises(BadValue, match="expected share between 0 and 1"):
        make()


@pytest.mark.parametrize("by", [0.0, float("inf")])
def test_a_scale_that_loses_the_reward_is_refused(by):
    with pytest.raises(BadValue, match="expected by to be finite and not 0"):
        Scaled(Accuracy(), by)
