"""The chance that later looks decide, against simulations with the seed's own rule."""

from statistics import fmean

import numpy as np
import pytest

from eval.stats.seeds import LOOKS, seed_effect
from eval.stats.stopping import conditional_power

NOISE = [-1.0, 0.0, 1.0]  # of deviation 1


def simulated(differences: list[float], runs: int = 1500, **options: float) -> float:
    """The share of decided claims if the seeds to come scatter as those so far."""
    random = np.random.default_rng(1)
    starts = int(options.pop("starts", 8))
    mean, deviation = np.mean(differences), np.std(differences, ddof=1)
    decided = 0
    for _ in range(runs):
        seeds = [*differences, *(mean + deviation * random.normal(size=5))]
        decided += any(
            seed_effect(
                [
                    fmean(seeds[start : look.seeds : starts])
                    for start in range(min(starts, look.seeds))
                ],
                level=look.level,
                **options,
            ).verdict
            != "undecided"
            for look in LOOKS[1:]
        )
    return decided / runs


@pytest.mark.parametrize(
    ("effect", "options"),
    [
        (0.0, {}),
        (0.5, {}),
        (1.0, {}),
        (1.0, {"shared": 0.3}),
        (3.0, {"starts": 3}),
        (0.2, {"equal": 1.5}),
    ],
)
def test_it_is_the_share_of_simulated_claims_that_the_later_looks_decide(
    effect: float, options: dict[str, float]
):
    differences = [effect + noise for noise in NOISE]
    found = conditional_power(differences, LOOKS[1:], **options)
    assert found == pytest.approx(simulated(differences, **options), abs=0.06)
    assert found == conditional_power(differences, LOOKS[1:], **options)


def test_without_spread_it_is_sure_if_the_sign_test_will_decide():
    assert conditional_power([1.0] * 3, LOOKS[1:]) == 1
    assert conditional_power([0.0] * 3, LOOKS[1:]) == 0
    assert conditional_power([1.0] * 3, LOOKS[1:2]) == 0  # 2 / 2**5 is above 1.5 %
