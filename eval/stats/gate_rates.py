"""How often the comparison with accepted runs finds a planted drop, and raises a false alarm."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.stats.regressions import OWN, SHARED, Difference, found_drops

ARMS, SEEDS, SUITES, PROBLEMS = 5, 3, 4, 1000
CHANGED = 0.09  # share of the problems that only one of two seeds solves
SIMULATIONS = 4000


@dataclass(frozen=True)
class Planted:
    """A drop in points, in everything or in one suite of one arm; `bound` is what to meet."""

    name: str
    points: float
    alone: bool
    bound: float


@dataclass(frozen=True)
class Rate:
    """How often runs with a planted drop raise an alarm; the error is that of the simulation."""

    planted: Planted
    spread: str
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
    Planted("6 points in one suite of one arm", 6.0, alone=True, bound=0.90),
)
# How runs spread: with the seeds of the accepted ones only the planted answers are lost.
SPREADS = {
    "other seeds": (SHARED, OWN),
    "other seeds that share nothing": (0.0, OWN),
    "the same seeds": (0.0, 0.0),
}


def rates(simulations: int = SIMULATIONS, seed: int = 0) -> list[Rate]:
    """Every planted drop among runs of every spread."""
    draw = np.random.default_rng(seed)
    return [rate(planted, spread, simulations, draw) for spread in SPREADS for planted in PLANTED]


def rate(planted: Planted, spread: str, simulations: int, draw: np.random.Generator) -> Rate:
    """How often one planted drop is found."""
    found = sum(
        any(True for _ in found_drops(drawn(planted, SPREADS[spread], draw)))
        for _ in range(simulations)
    )
    share = found / simulations
    error = (share * (1 - share) / simulations) ** 0.5
    return Rate(planted, spread, share, error, simulations)


def drawn(planted: Planted, spread: Sequence[float], draw: np.random.Generator) -> list[Difference]:
    """The differences of one simulated check; each seed's part counts twice, as runs differ."""
    shared, own = (deviation * 2**0.5 for deviation in spread)
    every = own > 0
    differences: list[Difference] = []
    for arm in range(ARMS):
        for seed in range(SEEDS):
            together = draw.normal(0, shared)
            for suite in range(SUITES):
                hit = not planted.alone or (arm, suite) == (0, 0)
                lost = draw.binomial(PROBLEMS, planted.points / 100 * hit)
                noise = round((together + draw.normal(0, own)) * PROBLEMS / 100)
                changed = CHANGED * every + lost / PROBLEMS
                delta = 100 * (noise - lost) / PROBLEMS
                name = (str(arm), f"{arm}/{seed}", str(suite))
                differences.append(Difference(*name, delta, changed, PROBLEMS))
    return differences
