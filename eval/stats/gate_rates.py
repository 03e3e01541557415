"""How often the comparison with accepted runs finds a planted drop, and raises a false alarm."""

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
    found_drops,
)

ARMS, SUITES, PROBLEMS = 5, 4, 1000
SEEDS = (3, 8)
SIMULATIONS = 2000


@dataclass(frozen=True)
class Planted:
    """A drop in points, in everything or in one suite of one arm; `bound` is what to meet."""

    name: str
    points: float
    alone: bool
    bound: float


@dataclass(frozen=True)
class Spread:
    """Whether the new runs have other seeds, and which share of what these change arms share."""

    name: str
    other: bool = True
    together: float = 0.0


@dataclass(frozen=True)
class Rate:
    """How often runs with a planted drop raise an alarm; the error is that of the simulation."""

    planted: Planted
    spread: Spread
    seeds: int
    found: float
    error: float
    simulations: int

    @property
    def met(self) -> bool:
        """Whether a drop is found often enough, or nothing seldom enough."""
        return self.found >= self.planted.bound if self.planted.points else self.found <= 0.05


PLANTED = (
    Planted("nothing", 0.0, alone=False, bound=0.05),
    Planted("1 point everywhere", 1.0, alone=False, bound=0.50),
    Planted("2 points everywhere", 2.0, alone=False, bound=0.95),
    Planted("5 points in one suite of one arm", 5.0, alone=True, bound=0.90),
)
SPREADS = (
    Spread("the same seeds", other=False),
    Spread("other seeds, arms move together", together=1.0),
    Spread("other seeds, arms move half together", together=0.5),
    Spread("other seeds, arms on their own", together=0.0),
)


def rates(simulations: int = SIMULATIONS, seed: int = 0) -> list[Rate]:
    """Every planted drop among runs of every spread and number of seeds."""
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
    """How often one planted drop is found."""
    found = sum(
        any(True for _ in found_drops(drawn(planted, spread, seeds, draw)))
        for _ in range(simulations)
    )
    share = found / simulations
    error = (share * (1 - share) / simulations) ** 0.5
    return Rate(planted, spread, seeds, share, error, simulations)


def run_deviation() -> float:
    """The standard deviation between seeds of a run's mean over the suites, in points."""
    return (SHARED**2 + OWN**2 / SUITES) ** 0.5


def half_seen(seeds: int) -> float:
    """The drop everywhere, in points, that the test over all arms finds in half of the checks."""
    error = run_deviation() * (2 / seeds) ** 0.5
    return -error * float(t.ppf(LEVELS["all"], KNOWN + seeds - 1))


def drawn(
    planted: Planted, spread: Spread, seeds: int, draw: np.random.Generator
) -> list[Difference]:
    """The differences of one simulated check."""
    noise = seeds_part(spread, seeds, draw)
    return list(differences(planted, spread, noise, draw))


def seeds_part(spread: Spread, seeds: int, draw: np.random.Generator) -> NDArray[np.float64]:
    """What other seeds alone change, in points, for each arm, seed and suite.

    Both runs differ by their seeds, so each part counts twice. The variances are drawn anew for
    every check, from what the degrees of freedom of their measurement allow.
    """
    scale = (2 * KNOWN / draw.chisquare(KNOWN)) ** 0.5 * spread.other
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
    """Those that the seeds make, less the planted answers."""
    for (arm, seed, suite), points in np.ndenumerate(noise):
        hit = not planted.alone or (arm, suite) == (0, 0)
        lost = draw.binomial(PROBLEMS, planted.points / 100 * hit)
        delta = 100 * (round(points * PROBLEMS / 100) - lost) / PROBLEMS
        changed = CHANGED * spread.other + lost / PROBLEMS
        yield Difference(str(arm), seed, str(suite), delta, changed, PROBLEMS)
