"""Optimal values and the fixed point of A*-PO, against numbers worked out by hand."""

from math import exp, log

import pytest

from core.laws import values
from core.laws.baselines import RATES
from core.laws.values import estimate_error, fixed_point_divergence, value


def test_a_value_is_between_the_mean_and_the_greatest_reward():
    assert value(0.5) == pytest.approx(0.5 * log((3 * exp(2) + 5) / 8))
    assert 3 / 8 < value(100.0) < value(0.5) < value(0.01) < 1
    assert value(100.0) == pytest.approx(3 / 8, abs=2e-3)


def test_the_error_of_one_sample_is_that_of_a_coin():
    exact = [0.5 * log(1 - p + p * exp(2)) for p in RATES]
    coin = [p * (1 - v) + (1 - p) * v for p, v in zip(RATES, exact, strict=True)]
    assert estimate_error(1) == pytest.approx(coin)
    both = zip(estimate_error(8), estimate_error(1), strict=True)
    assert all(eight < one for eight, one in both)


def test_the_regression_ends_at_the_tilted_reference():
    assert max(map(abs, fixed_point_divergence())) < 1e-12


def test_with_another_softness_it_ends_elsewhere(monkeypatch):
    plain = values.optimal_values
    monkeypatch.setattr(values, "optimal_values", lambda rewards, beta: plain(rewards, 9 * beta))
    assert min(fixed_point_divergence()) > 1e-6
