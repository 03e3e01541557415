"""What a plan promises to see is what simulated evaluations see."""

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.power import NormalIndPower

from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark
from eval.stats.comparisons import compare_reported, mcnemar
from eval.stats.estimates import mean_interval
from eval.stats.power import ACROSS, WITHIN, plan

GSM8K, MATH, MGSM = (find_benchmark(name) for name in ("gsm8k", "math", "mgsm_zh"))


@pytest.mark.parametrize(("benchmark", "half"), [(GSM8K, 1.46), (MATH, 1.16), (MGSM, 4.2)])
def test_the_gate_is_the_half_width_of_one_run_at_the_reported_score(benchmark, half: float):
    rate = {"gsm8k": 88.2, "math": 51.7, "mgsm_zh": 79.6}[benchmark.name]
    assert plan(benchmark, rate=rate).gate == pytest.approx(half, abs=0.02)


def test_unpaired_differences_are_those_of_statsmodels():
    found = plan(MATH, rate=50)
    effect = NormalIndPower().solve_power(nobs1=5000, alpha=0.05, power=0.8)
    assert found.unpaired == pytest.approx(50 * effect, rel=1e-3)


def draw(random: np.random.Generator, rate: float, gain: float, n: int, k: int) -> np.ndarray:
    """Right answers (system, question, sample) with the correlations of the plan.

    Questions' abilities are normal with a threshold at each sample; ACROSS and WITHIN are
    correlations of the answers, so those of the abilities are found by simulation beforehand.
    """
    shared = random.normal(size=(1, n, 1)) * LATENT_ACROSS**0.5
    own = random.normal(size=(2, n, 1)) * (LATENT_WITHIN - LATENT_ACROSS) ** 0.5
    noise = random.normal(size=(2, n, k)) * (1 - LATENT_WITHIN) ** 0.5
    means = np.array([rate - gain / 2, rate + gain / 2]) / 100
    return shared + own + noise < norm.ppf(means)[:, None, None]


LATENT_ACROSS, LATENT_WITHIN = 0.588, 0.891  # at a rate of 50 %: sin(pi r / 2)


def test_latent_correlations_are_those_of_the_plan():
    assert np.sin(np.pi * ACROSS / 2) == pytest.approx(LATENT_ACROSS, abs=1e-3)
    assert np.sin(np.pi * WITHIN / 2) == pytest.approx(LATENT_WITHIN, abs=1e-3)


@pytest.mark.parametrize(("k", "runs"), [(1, 400), (8, 150)])
def test_the_promised_difference_is_seen_in_80_percent(k: int, runs: int):
    """Within four standard errors of the simulation, and two points for McNemar's whole counts."""
    random = np.random.default_rng(k)
    promised = plan(GSM8K, samples=k).paired
    seen = 0
    for _ in range(runs):
        old, new = draw(random, 50.0, promised, GSM8K.n, k)
        if k == 1:
            seen += mcnemar(int((old & ~new).sum()), int((new & ~old).sum())) < 0.05
        else:
            seen += mean_interval((new.mean(1) - old.mean(1)).tolist()).low > 0
    assert abs(seen / runs - 0.80) < 4 * 0.4 / runs**0.5 + 0.02


def test_the_chance_to_say_reproduced_is_that_of_simulated_runs():
    random = np.random.default_rng(0)
    promised = plan(MATH, rate=51.7).gate_power
    drawn = random.binomial(5000, 0.517, size=1000)
    said = [compare_reported(int(x), 5000, 51.7, 2.0).verdict == "reproduced" for x in drawn]
    assert 100 * np.mean(said) == pytest.approx(promised, abs=5)  # rounding of the printed digit
    assert plan(MGSM, rate=79.6).gate_power == 0


def test_more_of_anything_never_sees_less():
    for name in ("half_width", "paired", "unpaired", "gate"):
        base = getattr(plan(GSM8K), name)
        assert getattr(plan(MATH), name) < base
        assert getattr(plan(GSM8K, samples=8), name) < base
        assert getattr(plan(GSM8K, seeds=8), name) == getattr(plan(GSM8K, samples=8), name)
        assert getattr(plan(GSM8K, limit=330), name) == pytest.approx(2 * base, rel=0.01)
        assert getattr(plan(GSM8K, seed_spread=1.0), name) > base
    assert plan(GSM8K).paired < plan(GSM8K).unpaired
    assert plan(GSM8K, limit=10**6).n == 1319


def test_plans_that_make_no_sense_are_refused():
    for wrong in ({"samples": 0}, {"seeds": 0}, {"rate": 100}, {"rate": 0}, {"seed_spread": -1}):
        with pytest.raises(BadValue, match="expected at least 1 sample"):
            plan(GSM8K, **wrong)
