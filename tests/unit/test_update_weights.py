"""Exact weights of tokens and answers, against numbers worked out by hand."""

from math import sqrt

import pytest

from core.laws.update_weights import (
    LIMIT,
    PROBABILITIES,
    gradient_norms,
    leave_one_out_gap,
    minority_weight,
    token_weight,
)
from core.losses.policy import LOSS_TYPES


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
@pytest.mark.parametrize("length", [1, 10, 100])
def test_a_tokens_weight_is_one_over_the_length_or_the_limit(loss_type, length):
    expected = {
        "dr_grpo": 1 / LIMIT,
        "luspo": 1.0,
        "cispo": 0.2 / length,  # the cap where none is set, as in TRL
    }.get(loss_type, 1 / length)
    assert token_weight(loss_type, length) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("length", [1, 10, 100])
def test_a_tokens_weight_with_one_ratio_for_the_answer(length):
    assert token_weight("luspo", length, "sequence") == pytest.approx(1.0, rel=1e-12)
    assert token_weight("grpo", length, "sequence") == pytest.approx(1 / length, rel=1e-12)


@pytest.mark.parametrize("right", range(1, 8))
def test_a_minoritys_weight_is_its_deviation_over_the_spread(right):
    rare = max(right, 8 - right) / 8
    assert minority_weight("none", right, 8) == pytest.approx(rare, rel=1e-12)
    spread = sqrt(8 / 7 * right * (8 - right)) / 8
    assert minority_weight("group", right, 8) == pytest.approx(rare / (spread + 1e-4), rel=1e-6)


@pytest.mark.parametrize("group", [2, 3, 8])
def test_without_a_divisor_advantages_are_those_of_leave_one_out(group):
    assert leave_one_out_gap(group) < 1e-15


def test_the_gradient_of_dft_is_that_of_nll_times_the_probability():
    pairs = zip(gradient_norms("dft"), gradient_norms("nll"), strict=True)
    assert [a / b for a, b in pairs] == pytest.approx(PROBABILITIES, rel=1e-12)
    # with p of one token and (1 - p) / 3 of three: |dNLL/dz|^2 = (1 - p)^2 (1 + 1/3)
    expected = [(1 - p) * sqrt(4 / 3) for p in PROBABILITIES]
    assert gradient_norms("nll") == pytest.approx(expected, rel=1e-9)
