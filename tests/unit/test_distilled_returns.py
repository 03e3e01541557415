"""Means of later rewards, weights by place, and capped ratios: worked examples, padding, laws."""

from math import inf, nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.losses.returns import later_rewards, mean_of_later_rewards
from core.losses.selection import has_hint
from core.losses.token_weights import TOTALS, capped_ratio, position_weights

STUDENT, TEACHER = [-0.5, -1.2, -0.3, -2.0], [-0.7, -0.4, -1.3, -2.5]
NUMBERS = st.lists(st.floats(-3, 3), min_size=6, max_size=6)


def row(values):
    return torch.tensor([values], dtype=torch.float64)


def ones(values):
    return torch.ones_like(row(values))


REWARDS = (row(TEACHER) - row(STUDENT))[:, :3]


@pytest.mark.parametrize(
    ("function", "gamma", "has_own", "expected"),
    [
        (mean_of_later_rewards, 0.95, True, [-0.12007, -0.076923, -1.0]),
        (mean_of_later_rewards, 0.0, True, [-0.2, 0.8, -1.0]),
        (mean_of_later_rewards, 1.0, False, [-0.1, -1.0, 0.0]),
        (mean_of_later_rewards, 0.0, False, [0.0, 0.0, 0.0]),
        (later_rewards, 0.95, True, [-0.3425, -0.15, -1.0]),
        (later_rewards, 1.0, False, [-0.2, -1.0, 0.0]),
    ],
)
def test_the_worked_example_of_minillm(function, gamma, has_own, expected):
    """Of arXiv 2306.08543: returns of TRL, of the official code and of the paper."""
    found = function(REWARDS, torch.ones_like(REWARDS), gamma=gamma, has_own=has_own)
    assert found[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_returns_of_a_long_answer_are_finite_and_discount_from_their_token():
    """At 4,096 tokens gamma ** t has no number that 32 bits represent."""
    rewards = torch.ones(1, 4096)
    mask = torch.ones_like(rewards)
    mean = mean_of_later_rewards(rewards, mask, gamma=0.95, has_own=True)
    assert mean[0].tolist() == pytest.approx([1.0] * 4096, abs=1e-5)
    total = later_rewards(rewards, mask, gamma=0.95, has_own=True)
    assert total[0, [0, -1]].tolist() == pytest.approx([20.0, 1.0], abs=1e-3)


@pytest.mark.parametrize("has_own", [True, False])
@pytest.mark.parametrize("gamma", [0.0, 0.95, 1.0])
@given(NUMBERS)
def test_returns_are_the_same_in_any_padding(gamma, has_own, rewards):
    padded = row([9.0, *rewards[:2], 9.0, *rewards[2:], 9.0, 9.0])
    mask = row([0.0, 1, 1, 0, 1, 1, 1, 1, 0, 0])
    for function in (later_rewards, mean_of_later_rewards):
        exact = function(row(rewards), ones(rewards), gamma=gamma, has_own=has_own)
        found = function(padded, mask, gamma=gamma, has_own=has_own)
        assert found[mask > 0].tolist() == pytest.approx(exact[0].tolist(), abs=1e-12)
        assert (found[mask == 0] == 0).all()


@given(st.floats(-2, 2), st.floats(0.1, 1), st.integers(2, 7))
def test_the_mean_of_equal_rewards_is_that_reward(reward, gamma, length):
    rewards = torch.full((1, length), reward, dtype=torch.float64)
    for has_own in (True, False):
        mean = mean_of_later_rewards(
            rewards, torch.ones_like(rewards), gamma=gamma, has_own=has_own
        )
        assert mean[0, : length - 1].tolist() == pytest.approx([reward] * (length - 1), abs=1e-12)
        assert mean[0, -1].item() == (reward if has_own else 0.0)


@pytest.mark.parametrize(
    ("total", "weights", "loss"),
    [("all", [1.5, 1.46, 1.3, 1.1], -0.0596), ("without_last", [1.5, 1.45, 1.25, 1.0], -0.03325)],
)
def test_the_worked_example_of_position_weights(total, weights, loss):
    """Of arXiv 2606.22600, where TRL and the paper sum over different tokens."""
    advantages = row(TEACHER) - row(STUDENT)
    found = position_weights(advantages, torch.ones_like(advantages), 0.5, total)
    assert found[0].tolist() == pytest.approx(weights)
    assert -(row(STUDENT) * found * advantages).mean().item() == pytest.approx(loss)
    assert -(row(STUDENT) * advantages).mean().item() == pytest.approx(-0.11)


@pytest.mark.parametrize("total", [*TOTALS])
@given(NUMBERS, st.floats(0, 1))
def test_weights_fall_and_do_not_read_other_tokens(total, advantages, gamma):
    first = position_weights(row(advantages), ones(advantages), gamma, total)
    weights = first[0].tolist()
    assert weights[0] == 1 + gamma
    assert weights == sorted(weights, reverse=True)
    padded = row([nan, *advantages[:3], inf, *advantages[3:], nan])
    mask = row([0.0, 1, 1, 1, 0, 1, 1, 1, 0])
    found = position_weights(padded, mask, gamma, total)
    assert found[mask > 0].tolist() == pytest.approx(weights, abs=1e-9)
    assert found.isfinite().all()


@pytest.mark.parametrize("total", [*TOTALS])
def test_weights_have_no_gradient_and_no_scale(total):
    advantages = row([0.3, -0.2, 0.9]).requires_grad_()
    weights = position_weights(advantages, ones([1, 1, 1]), 0.5, total)
    assert not weights.requires_grad
    scaled = position_weights(7 * advantages, ones([1, 1, 1]), 0.5, total)
    assert scaled.tolist()[0] == pytest.approx(weights.tolist()[0])
    still = position_weights(row([0.0, 0.0]), ones([1, 1]), 0.5, total)
    assert still[0].tolist() == [1.5, 1.5]


def test_the_worked_example_of_a_capped_ratio():
    log_ratio = row([-1.44019 + 2.5, -0.5, 700.0, -700.0]).requires_grad_()
    uncapped = capped_ratio(log_ratio, ones([1] * 4), 1e30)
    assert uncapped[0].tolist() == pytest.approx([2.885824, 0.606531, 4.851652e8, 2.061154e-9])
    assert not uncapped.requires_grad
    capped = capped_ratio(log_ratio, ones([1] * 4), 2.0)
    assert capped[0, :3].tolist() == pytest.approx([2.0, 0.606531, 2.0])


@pytest.mark.parametrize("filler", [nan, inf, -inf])
def test_the_ratio_of_padding_is_1(filler):
    found = capped_ratio(row([0.0, filler, 1.0]), row([1.0, 0, 0]), 2.0)
    assert found[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("successes", "feedback", "expected"),
    [
        ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
        ([1, 0, 0], [0, 0, 0], [0, 1, 1]),
        ([1, 1, 0], [0, 0, 0], [1, 1, 1]),
        ([0, 0, 0], [0, 1, 0], [0, 1, 0]),
        ([0, 0, 1], [0, 0, 1], [1, 1, 1]),
    ],
)
def test_a_hint_is_another_success_of_the_group_or_feedback(successes, feedback, expected):
    found = has_hint(torch.tensor(successes).bool(), 3, torch.tensor(feedback).bool())
    assert found.int().tolist() == expected
    twice = [torch.tensor([*own, 1, 1, 1]).bool() for own in (successes, feedback)]
    assert has_hint(twice[0], 3, twice[1]).int().tolist() == [*expected, 1, 1, 1]
