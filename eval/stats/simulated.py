"""Simulates claims with problems, seeds and arms drawn at random: how often verdicts are wrong.

The components are those that `core.verdicts.variance_components` measures in the runs of the pocket
world: an arm scatters over seeds by 0.72 points beside the drawing of its problems, and answers to
one problem correlate by 0.755 between arms of a seed. Where seeds share their problems, as
they did in the first pocket world, answers correlate by 0.78 between seeds of an arm, by 0.71
between arms of a seed and by 0.63 between other arms of other seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from eval.stats.seeds import LEVEL, LOOKS, Look, Mean, over_seeds

PROBLEMS = 2000  # two suites of 1,000
TRAINING = 0.72  # points: the standard deviation of an arm over seeds, less that of its problems
BUILD = 1.5  # points: what all arms of a seed have in common
# Shares of the variance of a shared problem's latent difficulty: sin(pi r / 2) of a correlation r.
OF_PROBLEM, OF_ARM, OF_SEED = 0.836, 0.105, 0.055
SAME_SEED = 0.755  # the correlation of two arms' answers to a problem, with one seed
RATE = 61.4  # percent
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class World:
    """What scatters, and by how much: the first two arms are the ones that are compared.

    `training` is the deviation of each arm over seeds, `builds` that of the difference between the
    arms over start policies, of which there are three. With `shared` all seeds answer one set of
    problems.
    """

    training: tuple[float, ...] = (TRAINING,) * 5
    builds: float = 0.0
    shared: bool = False


@dataclass(frozen=True)
class Drawn:
    """One simulated experiment: scores (arm, seed), and of the difference between the first two.

    `noise` is the variance of one seed's difference over the drawing of its problems, `common` that
    of the mean difference over problems that seeds share, for the first 1, 2, ... seeds.
    """

    scores: Array
    noise: Array
    common: Array

    def differences(self, seeds: int) -> Array:
        """Of the first two arms, for the first seeds."""
        return self.scores[0, :seeds] - self.scores[1, :seeds]


def draw(random: np.random.Generator, world: World, effect: float, seeds: int) -> Drawn:
    """Answers to every problem by every arm with every seed, and what they come to."""
    arms, normal = len(world.training), random.standard_normal
    rates = RATE + BUILD * normal(seeds) + np.array(world.training)[:, None] * normal((arms, seeds))
    rates[0] += effect + world.builds * normal(3)[np.arange(seeds) % 3]
    bars = ndtri(np.clip(rates, 1.0, 99.0) / 100).astype(np.float32)[:, :, None]
    small = np.float32
    if world.shared:
        latent = sqrt(OF_PROBLEM) * normal(PROBLEMS, small)
        latent = latent + sqrt(OF_ARM) * normal((arms, 1, PROBLEMS), small)
        latent = latent + sqrt(OF_SEED) * normal((1, seeds, PROBLEMS), small)
        rest = 1 - OF_PROBLEM - OF_ARM - OF_SEED
    else:
        rest = 1 - sin(pi * SAME_SEED / 2)
        latent = sqrt(1 - rest) * normal((1, seeds, PROBLEMS), small)
    right = latent + sqrt(rest) * normal((arms, seeds, PROBLEMS), small) < bars
    differing = 100.0 * (right[0].astype(np.int8) - right[1])
    means = np.cumsum(differing, axis=0) / np.arange(1, seeds + 1)[:, None]
    common = means.var(axis=1) / PROBLEMS if world.shared else np.zeros(seeds)
    return Drawn(100.0 * right.mean(axis=2), differing.var(axis=1) / PROBLEMS, common)


def expected_spread(problems: int) -> float:
    """The deviation over seeds, in points, of the difference of two arms on so many problems."""
    answers = 2 * RATE * (100 - RATE) * (1 - SAME_SEED) / problems
    return sqrt(2 * TRAINING**2 + answers)


def own_spread(drawn: Drawn, seeds: int) -> Mean | None:
    """The rule of this project: Student's t over the seeds' differences."""
    return over_seeds(drawn.differences(seeds).tolist(), shared=float(drawn.common[seeds - 1]))


def pooled_spread(drawn: Drawn, seeds: int) -> Mean | None:
    """The spread of all arms together: what arms and seeds do not explain of the scores."""
    scores = drawn.scores[:, :seeds]
    left = scores - scores.mean(0) - scores.mean(1, keepdims=True) + scores.mean()
    freedom = (scores.shape[0] - 1) * (seeds - 1)
    variance = 2 * float((left**2).sum()) / freedom / seeds
    return Mean(float(drawn.differences(seeds).mean()), sqrt(variance), freedom)


def single_problems(drawn: Drawn, seeds: int) -> Mean | None:
    """Seeds and problems both random: the seeds' component of variance is never below zero."""
    differences = drawn.differences(seeds)
    variance = max(float(np.var(differences, ddof=1)), float(drawn.noise[:seeds].mean()))
    return Mean(float(differences.mean()), sqrt(variance / seeds), seeds - 1)


Rule = Callable[[Drawn, int], Mean | None]
RULES: dict[str, Rule] = {
    "each comparison its own spread": own_spread,
    "one spread of all arms": pooled_spread,
    "outcomes of single problems": single_problems,
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Shares, in percent, of simulated claims at one true effect."""

    effect: float
    fixed: dict[int, float]  # that are decided, by a fixed number of seeds
    coverage: dict[int, float]  # whose interval holds the true effect, by a fixed number of seeds
    looks: float  # that are decided over the looks, in either direction
    stopped: float  # whose interval, where the looks stop, holds the true effect
    seeds: float  # mean number of seeds that the looks take


def rates(
    rule: Rule,
    world: World,
    effect: float,
    *,
    runs: int,
    seed: int = 0,
    looks: Sequence[Look] = LOOKS,
) -> Rate:
    """What a rule does to so many simulated claims of `effect` points."""
    random = np.random.default_rng(seed)
    sizes = [look.seeds for look in looks]
    decided, covered = (dict.fromkeys(sizes, 0) for _ in range(2))
    stopped = held = used = 0
    for _ in range(runs):
        drawn = draw(random, world, effect, sizes[-1])
        means = {size: rule(drawn, size) for size in sizes}
        for size, mean in means.items():
            decided[size] += not holds(mean, LEVEL, 0.0)
            covered[size] += holds(mean, LEVEL, effect)
        first = next((one for one in looks if not holds(means[one.seeds], one.level, 0.0)), None)
        last = first or looks[-1]
        held += first is not None
        stopped += holds(means[last.seeds], last.level, effect)
        used += last.seeds
    return Rate(
        effect=effect,
        fixed={size: 100 * n / runs for size, n in decided.items()},
        coverage={size: 100 * n / runs for size, n in covered.items()},
        looks=100 * held / runs,
        stopped=100 * stopped / runs,
        seeds=used / runs,
    )


def holds(mean: Mean | None, level: float, value: float) -> bool:
    """Whether the interval holds a value; where there is no interval, no value is excluded."""
    if mean is None:
        return True
    low, high = mean.interval(level)
    return low <= value <= high
