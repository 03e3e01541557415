"""Baselines over all rewards and all answers, against numbers worked out by hand."""

from math import sqrt

import pytest

from core.laws.baselines import (
    PROMPTS,
    RATES,
    all_rewards,
    easy_weight,
    expected_advantage,
    expected_of_many,
    expected_of_pair,
    gradient_bias,
    gradient_variance,
    group_advantages,
    mean_baseline_gap,
    pair_advantages,
    pair_closed_form,
    pair_direction,
    silent_share,
    token_moments,
)


def test_a_mixed_pair_has_advantages_of_one_and_of_less_with_the_sample_deviation():
    assert pair_closed_form() == [0, 0, -1, 1, 1, -1, 0, 0]
    assert pair_advantages("population") == pytest.approx(pair_closed_form(), abs=3e-4)
    smaller = [x / sqrt(2) for x in pair_closed_form()]
    assert pair_advantages("group") == pytest.approx(smaller, abs=3e-4)


def test_the_expected_advantage_of_four_answers_is_the_sum_over_the_other_three():
    rate = RATES[1]
    right = sum(
        ways * rate**k * (1 - rate) ** (3 - k) * (1 - (k + 1) / 4)
        for k, ways in enumerate((1, 3, 3, 1))
    )
    wrong = -sum(
        ways * rate**k * (1 - rate) ** (3 - k) * k / 4 for k, ways in enumerate((1, 3, 3, 1))
    )
    assert expected_advantage("none", 4)[2:4] == pytest.approx([right, wrong], rel=1e-12)


def test_the_expected_advantage_is_linear_in_pairs_alone_and_a_score_in_large_groups():
    pair, many = expected_of_pair(), expected_of_many()
    assert expected_advantage("population", 2) == pytest.approx(pair, abs=3e-4)
    assert expected_advantage("population", 1024) == pytest.approx(many, abs=1e-2)
    assert expected_advantage("population", 8) != pytest.approx(pair, abs=0.05)
    assert expected_advantage("population", 8) != pytest.approx(many, abs=0.05)


def test_a_pairs_gradient_is_that_of_a_difference_of_log_probabilities():
    found = pair_direction("population")
    assert len(found) == 12 * 11
    assert found == pytest.approx([1.0] * len(found), abs=1e-12)


@pytest.mark.parametrize("group", [2, 3, 8])
def test_the_mean_of_all_shrinks_advantages_over_the_others(group):
    assert mean_baseline_gap(group) < 1e-15
    others = group_advantages(all_rewards(group), estimator="leave_one_out")
    assert others[1].tolist() == pytest.approx([*[-1 / (group - 1)] * (group - 1), 1.0])


@pytest.mark.parametrize("group", [2, 3])
def test_leave_one_out_is_unbiased_and_the_mean_of_all_shrinks_the_gradient(group):
    assert max(gradient_bias("leave_one_out", group)) < 1e-15
    assert max(gradient_bias("constant", group)) < 1e-15
    # three equal answers of which one is paid: the gradient is (2, -1, -1) / 9
    assert gradient_bias("group_mean", group)[0] == pytest.approx(sqrt(6) / 9 / group, rel=1e-12)


def test_the_variance_of_leave_one_out_falls_to_that_of_the_mean_reward():
    # Three equal answers of which one is paid, each drawn against the mean reward 1/3.
    by_answer = [(2 / 3) ** 2 * 2 / 3, (1 / 3) ** 2 * 2 / 3, (1 / 3) ** 2 * 2 / 3]
    exact = sum(by_answer) / 3 - 6 / 81
    for group in (2, 3):
        assert gradient_variance("constant", group)[0] == pytest.approx(exact, rel=1e-12)
    # Of two of them the variance of the other's reward, 2/9, times that of the score is added.
    assert gradient_variance("leave_one_out", 2)[0] == pytest.approx(exact + 2 / 9, rel=1e-12)
    both = zip(*(gradient_variance("leave_one_out", k) for k in (2, 4)), strict=True)
    assert all(two > four for two, four in both)
    assert len(gradient_variance("constant", 2)) == len(PROMPTS)


def test_whitened_tokens_have_no_mean_and_a_deviation_of_one():
    assert max(token_moments()) < 1e-6


def test_an_easy_prompt_weighs_as_much_as_a_mixed_one_only_by_the_groups_deviation():
    spreads = [sqrt(w * (8 - w)) / 4 for w in (1, 2, 3)]
    assert easy_weight("centred_batch") == pytest.approx([*spreads, 0.01], rel=1e-9)
    assert easy_weight("group") == pytest.approx([1.0] * 4, abs=0.02)


def test_a_group_is_silent_if_all_its_answers_are_right_or_all_wrong():
    for group in (2, 16):
        stated = [p**group + (1 - p) ** group for p in RATES]
        assert silent_share(group) == pytest.approx(stated, rel=1e-12)
