"""What estimators of Pass@K give on average."""

import pytest

from eval.stats.pass_at_k import RATES, K, decreases, expected, expected_plug_in, truth, variance


@pytest.mark.parametrize("n", [K, 20, 100])
def test_the_estimate_is_unbiased(n):
    assert expected(n) == pytest.approx(truth(), abs=1e-12)


def test_the_plug_in_estimate_is_too_low():
    low = expected_plug_in(20)
    assert all(a < b for a, b in zip(low, truth(), strict=True))
    assert low[RATES.index(0.1)] == pytest.approx(0.5681, abs=5e-4)  # by simulation, 200,000 draws


def test_of_k_samples_alone_the_estimate_is_a_coin_and_more_samples_vary_less():
    assert variance(K) == pytest.approx([p * (1 - p) for p in truth()], abs=1e-12)
    assert all(a < b for a, b in zip(variance(200), variance(K), strict=True))


def test_more_tries_never_hurt():
    assert decreases(20) == 0
