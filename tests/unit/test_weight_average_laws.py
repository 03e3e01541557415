"""Simulated averages of weights: their expectations, and what the laws would notice."""

from math import exp
from statistics import mean, stdev

import pytest
import torch

from core.claims import law
from core.laws import weight_averages
from core.laws.weight_averages import (
    LARGE_RATE,
    NOISE,
    RATE,
    SIZE,
    START,
    correction,
    estimates,
    fluctuation,
    loss,
    squared_distance,
    trained_weights,
)
from core.shards.weight_average import WeightAverage


@pytest.mark.parametrize("time", [0.5, 2.0, 8.0])
def test_the_trained_weights_have_the_loss_of_an_ornstein_uhlenbeck_process(time):
    shrunk = (1 - RATE) ** (2 * round(time / RATE))
    noise = RATE * NOISE**2 * (1 - shrunk) / (2 - RATE)  # of each coordinate
    expected = SIZE / 2 * (START**2 * shrunk + noise)
    found = [loss("live", time=time, seed=seed) for seed in range(100)]
    assert abs(mean(found) - expected) < 5 * stdev(found) / 10


def test_seeds_differ_and_are_the_same_again():
    found = [squared_distance(displaced=True, time=1.0, seed=seed) for seed in (0, 1, 100)]
    assert len(set(found)) == 3
    estimates.cache_clear()
    again = [squared_distance(displaced=True, time=1.0, seed=seed) for seed in (0, 1, 100)]
    assert again == found


@pytest.mark.parametrize("time", [1.0, 5.0])
def test_the_displacement_takes_the_bias_from_the_mean(time):
    """The mean is off by |theta_0|^2 ((1 - e^-T) / T)^2, the sum has the variance lr s^2 / T."""
    ema, bema = estimates(time, 0)
    bias = SIZE * (START * (1 - exp(-time)) / time) ** 2
    variance = SIZE * LARGE_RATE * NOISE**2 / time
    assert bema.mean().item() == pytest.approx(variance, rel=0.1)
    assert bias < ema.mean().item() < bias * 1.03 + variance


def test_from_the_optimum_the_displacement_only_adds_variance(monkeypatch):
    monkeypatch.setattr(weight_averages, "START", 0.0)
    estimates.cache_clear()
    pairs = [
        [squared_distance(displaced=d, time=2.0, seed=s) for s in range(40)] for d in (True, False)
    ]
    estimates.cache_clear()
    assert mean(pairs[0]) > 1.5 * mean(pairs[1])


def test_the_law_of_passive_averaging_notices_a_callback_that_moves_the_weights(monkeypatch):
    claim = law("core.laws.weight_averages:trained_weights", averaged=True)
    assert claim.values(()) == trained_weights(averaged=False)
    update = WeightAverage.update

    def mixes(self, weight, **coefficients):
        update(self, weight, **coefficients)
        weight.copy_(self.bema)

    monkeypatch.setattr(WeightAverage, "update", torch.no_grad()(mixes))
    assert trained_weights(averaged=True) != trained_weights(averaged=False)


def test_the_correction_goes_with_its_power():
    sizes = [max(map(abs, correction(bias_power=power))) for power in (0.0, 0.2, 2.0, 8.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 1
    assert sizes[2] > 1e-6 > 1e3 * sizes[3]


def test_the_average_fluctuates_less_than_the_weights_and_its_correction_more():
    live, ema, bema = (
        mean(fluctuation(name, seed=seed) for seed in range(100))
        for name in ("live", "ema", "bema")
    )
    assert ema < live < bema
