"""Simulates claims with random problems, seeds and arms, to measure how often verdicts are wrong.

The variance components are those measured on the runs of the pocket world
(`core.verdicts.variance_components`): the score of an arm has a standard deviation over seeds of
0.70 points beside the sampling of its problems, and the answers of two arms with one seed to one
problem correlate by 0.76. If seeds share their problems, as in the first pocket world, answers
correlate by 0.78 between seeds of an arm, by 0.71 between arms of a seed and by 0.63 between
different arms with different seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from eval.stats.seeds import LEVEL, LOOKS, Look, Mean, over_seeds

PROBLEMS = 2000  # two suites of 1,000
TRAINING = 0.96  # points: the standard deviation of an arm over seeds, less that of its problems
BUILD = 1.5  # points: the standard deviation over seeds that all arms of a seed share
# Shares of the variance of a shared problem's latent difficulty: sin(pi r / 2) of a correlation r.
OF_PROBLEM, OF_ARM, OF_SEED = 0.836, 0.105, 0.055
SAME_SEED = 0.77  # the correlation of two arms' answers to a problem, with one seed
RATE = 61.2  # percent
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class World:
    """The variance components of a simulation; the claims compare the first two arms.

    `training` is the standard deviation of each arm over seeds, in points. With `shared` all seeds
    answer one set of problems.
    """

    training: tuple[float, ...] = (TRAINING,) * 5
    shared: bool = False


@dataclass(frozen=True)
class Experiment:
    """A simulated experiment.

    `scores`, of shape (arms, seeds), are in percent. `noise`, of shape (seeds,), is the variance of
    one seed's difference between the first two arms over the sampling of its problems. `common`, of
    shape (seeds,), is the variance of the mean difference over the first 1, 2, ... seeds caused by
    problems that the seeds share.
    """

    scores: Array
    noise: Array
    common: Array

    def differences(self, seeds: int) -> Array:
        """Return the first arm's score minus the second's for the first `seeds` seeds."""
        return self.scores[0, :seeds] - self.scores[1, :seeds]


def draw(random: np.random.Generator, world: World, effect: float, seeds: int) -> Experiment:
    """Simulate the answers of every arm with every seed to every problem and return their scores.

    `effect` is the true difference between the first two arms, in points.
    """
    arms, normal = len(world.training), random.standard_normal
    rates = RATE + BUILD * normal(seeds) + np.array(world.training)[:, None] * normal((arms, seeds))
    rates[0] += effect
    bars = ndtri(np.clip(rates, 1.0, 99.0) / 100).astype(np.float32)[:, :, None]
    small = np.float32
    if world.shared:
        latent = sqrt(OF_PROBLEM) * normal(PROBLEMS, small)
        latent = latent + sqrt(OF_ARM) * normal((arms, 1, PROBLEMS), small)
        latent = latent + sqrt(OF_SEED) * normal((1, seeds, PROBLEMS), small)
        noise_share = 1 - OF_PROBLEM - OF_ARM - OF_SEED
    else:
        noise_share = 1 - sin(pi * SAME_SEED / 2)
        latent = sqrt(1 - noise_share) * normal((1, seeds, PROBLEMS), small)
    right = latent + sqrt(noise_share) * normal((arms, seeds, PROBLEMS), small) < bars
    differing = 100.0 * (right[0].astype(np.int8) - right[1])
    means = np.cumsum(differing, axis=0) / np.arange(1, seeds + 1)[:, None]
    common = means.var(axis=1) / PROBLEMS if world.shared else np.zeros(seeds)
    return Experiment(100.0 * right.mean(axis=2), differing.var(axis=1) / PROBLEMS, common)


def expected_spread(problems: int) -> float:
    """Return the standard deviation over seeds, in points, of the difference between two arms.

    `problems` is the number of problems that each arm answers with each seed.
    """
    answers = 2 * RATE * (100 - RATE) * (1 - SAME_SEED) / problems
    return sqrt(2 * TRAINING**2 + answers)


def own_spread(experiment: Experiment, seeds: int) -> Mean | None:
    """Return the mean difference with Student's t over seeds, the rule of this project."""
    shared = float(experiment.common[seeds - 1])
    return over_seeds(experiment.differences(seeds).tolist(), shared=shared)


def pooled_spread(experiment: Experiment, seeds: int) -> Mean | None:
    """Return the mean difference with the residual spread of all arms over seeds."""
    scores = experiment.scores[:, :seeds]
    residuals = scores - scores.mean(0) - scores.mean(1, keepdims=True) + scores.mean()
    freedom = (scores.shape[0] - 1) * (seeds - 1)
    variance = 2 * float((residuals**2).sum()) / freedom / seeds
    return Mean(float(experiment.differences(seeds).mean()), variance, freedom)


def single_problems(experiment: Experiment, seeds: int) -> Mean | None:
    """Return the mean difference with seeds and problems both as random effects.

    The variance of the seeds' differences is at least the sampling variance of the problems.
    """
    differences = experiment.differences(seeds)
    variance = max(float(np.var(differences, ddof=1)), float(experiment.noise[:seeds].mean()))
    return Mean(float(differences.mean()), variance / seeds, seeds - 1)


Rule = Callable[[Experiment, int], Mean | None]
RULES: dict[str, Rule] = {
    "each comparison its own spread": own_spread,
    "one spread of all arms": pooled_spread,
    "outcomes of single problems": single_problems,
}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Shares of simulated claims at one true effect, in percent."""

    effect: float
    fixed: dict[int, float]  # decided claims, by a fixed number of seeds
    coverage: dict[int, float]  # intervals that contain the effect, by a fixed number of seeds
    looks: float  # claims that are decided at one of the looks, in either direction
    stopped: float  # intervals at the last look taken that contain the effect
    seeds: float  # mean number of seeds at the last look taken, not a share


def rates(
    rule: Rule,
    world: World,
    effect: float,
    *,
    runs: int,
    seed: int = 0,
    looks: Sequence[Look] = LOOKS,
) -> Rate:
    """Simulate `runs` claims of `effect` points and return how a rule decides them.

    There must be at least one run and one look.
    """
    random = np.random.default_rng(seed)
    sizes = [look.seeds for look in looks]
    decided, covered = (dict.fromkeys(sizes, 0) for _ in range(2))
    covered_at_stop = early = total_seeds = 0
    for _ in range(runs):
        experiment = draw(random, world, effect, sizes[-1])
        means = {size: rule(experiment, size) for size in sizes}
        for size, mean in means.items():
            decided[size] += not contains(mean, LEVEL, 0.0)
            covered[size] += contains(mean, LEVEL, effect)
        first = deciding_look(means, looks)
        last = first or looks[-1]
        early += first is not None
        covered_at_stop += contains(means[last.seeds], last.level, effect)
        total_seeds += last.seeds
    return Rate(
        effect=effect,
        fixed={size: 100 * n / runs for size, n in decided.items()},
        coverage={size: 100 * n / runs for size, n in covered.items()},
        looks=100 * early / runs,
        stopped=100 * covered_at_stop / runs,
        seeds=total_seeds / runs,
    )


def deciding_look(means: Mapping[int, Mean | None], looks: Sequence[Look]) -> Look | None:
    """Return the first look whose interval excludes zero; `means` are by number of seeds."""
    for look in looks:
        if not contains(means[look.seeds], look.level, 0.0):
            return look
    return None


def contains(mean: Mean | None, level: float, value: float) -> bool:
    """Return whether the interval contains a value; without an interval it contains every value."""
    if mean is None:
        return True
    low, high = mean.interval(level)
    return low <= value <= high
