"""Simulates how often the comparison with accepted runs detects a planted drop."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from eval.stats.regressions import (
    CHANGED,
    KNOWN,
    LEVELS,
    OWN,
    SHARED,
    Difference,
    find_drops,
)

ARMS, SUITES, PROBLEMS = 5, 4, 1000
SEEDS = (3, 8)
SIMULATIONS = 2000


@dataclass(frozen=True)
class Planted:
    """A drop in points, of all scores or (`alone`) of one suite of one arm.

    `bound` is the required alarm rate: a minimum, or a maximum where `points` is 0.
    """

    name: str
    points: float
    alone: bool
    bound: float


@dataclass(frozen=True)
class Spread:
    """The differences between new and accepted runs without any drop.

    `new_seeds` says whether they have other seeds, and `together` is the share of the seeds'
    variance that all arms have in common.
    """

    name: str
    new_seeds: bool = True
    together: float = 0.0


@dataclass(frozen=True)
class Rate:
    """The simulated alarm rate of runs with a planted drop, and its standard error."""

    planted: Planted
    spread: Spread
    seeds: int
    alarm_rate: float
    error: float
    simulations: int

    @property
    def met(self) -> bool:
        """True if the alarm rate meets the bound of its planted drop."""
        if self.planted.points:
            return self.alarm_rate >= self.planted.bound
        return self.alarm_rate <= self.planted.bound


PLANTED = (
    Planted("nothing", 0.0, alone=False, bound=0.05),
    Planted("1 point everywhere", 1.0, alone=False, bound=0.50),
    Planted("2 points everywhere", 2.0, alone=False, bound=0.95),
    Planted("5 points in one suite of one arm", 5.0, alone=True, bound=0.90),
)
SPREADS = (
    Spread("the same seeds", new_seeds=False),
    Spread("other seeds, arms move together", together=1.0),
    Spread("other seeds, arms move half together", together=0.5),
    Spread("other seeds, arms on their own", together=0.0),
)


def rates(simulations: int = SIMULATIONS, seed: int = 0) -> list[Rate]:
    """Simulate every planted drop with every spread and number of seeds."""
    draw = np.random.default_rng(seed)
    return [
        rate(planted, spread, seeds, simulations, draw)
        for spread in SPREADS
        for seeds in SEEDS
        for planted in PLANTED
    ]


def rate(
    planted: Planted, spread: Spread, seeds: int, simulations: int, draw: np.random.Generator
) -> Rate:
    """Simulate checks of one planted drop and return their alarm rate."""
    alarms = sum(
        any(True for _ in find_drops(simulate_check(planted, spread, seeds, draw)))
        for _ in range(simulations)
    )
    share = alarms / simulations
    error = (share * (1 - share) / simulations) ** 0.5
    return Rate(planted, spread, seeds, share, error, simulations)


def run_deviation() -> float:
    """Return the standard deviation between seeds of a run's mean over the suites, in points."""
    return (SHARED**2 + OWN**2 / SUITES) ** 0.5


def half_power_drop(seeds: int) -> float:
    """Return the drop of all scores, in points, detected in half of the checks over all arms."""
    error = run_deviation() * (2 / seeds) ** 0.5
    return -error * float(t.ppf(LEVELS["all"], KNOWN + seeds - 1))


def simulate_check(
    planted: Planted, spread: Spread, seeds: int, draw: np.random.Generator
) -> list[Difference]:
    """Return the differences of one simulated check, a row for each arm, seed and suite."""
    noise = seed_noise(spread, seeds, draw)
    return list(differences(planted, spread, noise, draw))


def seed_noise(spread: Spread, seeds: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """Return the differences caused by other seeds, in points, of shape (arms, seeds, suites).

    Both runs differ by their seeds, so each variance counts twice. The variances are drawn anew for
    every check, from the distribution that their degrees of freedom imply.
    """
    scale = (2 * KNOWN / draw.chisquare(KNOWN)) ** 0.5 * spread.new_seeds
    parts = [
        share**0.5
        * (
            SHARED * draw.normal(size=(arms, seeds, 1))
            + OWN * draw.normal(size=(arms, seeds, SUITES))
        )
        for arms, share in ((1, spread.together), (ARMS, 1 - spread.together))
    ]
    return scale * (parts[0] + parts[1])


def differences(
    planted: Planted, spread: Spread, noise: NDArray[np.float64], draw: np.random.Generator
) -> Iterator[Difference]:
    """Yield the difference of each arm, seed and suite: seed noise less the planted drop."""
    for (arm, seed, suite), points in np.ndenumerate(noise):
        hit = not planted.alone or (arm, suite) == (0, 0)
        lost = draw.binomial(PROBLEMS, planted.points / 100 * hit)
        delta = 100 * (round(points * PROBLEMS / 100) - lost) / PROBLEMS
        changed = CHANGED * spread.new_seeds + lost / PROBLEMS
        yield Difference(str(arm), seed, str(suite), delta, changed, PROBLEMS)
