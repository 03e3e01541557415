"""Several rewards and selections of answers, against numbers worked out by hand."""

import pytest
import torch

from core.laws.reward_shapes import (
    COUNTED,
    aggregated_advantages,
    batch_spread,
    distinct_groups,
    pair_levels,
    selected_advantages,
    selection_errors,
)

SUMMED, APART = "sum_then_normalize", "normalize_then_only_sum"


def test_a_pair_that_differs_in_two_rewards_is_one_level_above_one_that_differs_in_one():
    assert pair_levels(SUMMED) == 1
    assert pair_levels(APART) == 2
    rewards = torch.tensor([[0, 0], [1, 1]], dtype=torch.float64)
    assert aggregated_advantages(APART, rewards, 2).tolist() == pytest.approx(
        [-(2**0.5), 2**0.5], abs=1e-3
    )


def test_two_answers_with_two_rewards_make_two_or_three_groups_of_advantages():
    assert COUNTED[0] == (2, 2)
    assert distinct_groups(SUMMED)[0] == 2  # alike, or not
    assert distinct_groups(APART)[0] == 3  # alike, apart in one reward, apart in both
    both = list(zip(distinct_groups(APART), distinct_groups(SUMMED), strict=True))
    assert all(apart > summed for apart, summed in both)


def test_only_the_last_division_makes_the_spread_one_whatever_the_number_of_rewards():
    assert batch_spread("normalize_then_sum") == pytest.approx([1.0] * 5, abs=1e-3)
    grows = batch_spread(APART)
    assert grows == sorted(grows)
    assert grows[4] > 2 * grows[0]


@pytest.mark.parametrize("selection", ["shortest", "efficient"])
def test_rejected_answers_have_no_advantage_and_kept_ones_are_standardised(selection):
    rejected, mean, deviation = selection_errors(selection, 6, 4)
    assert rejected == 0
    assert mean < 1e-12
    assert deviation < 1e-3
    values, selected = selected_advantages(selection, 6, 4)
    assert (selected.sum(1) == 4).all()
    assert (values[selected] != 0).any()
