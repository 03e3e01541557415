"""Simulates claims whose seeds scatter normally: shared problems or starts, and several looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import cast

import numpy as np

from eval.stats.seeds import LEVEL, Look, Mean
from eval.stats.stopping import means_of_starts

RATIOS = (0.0, 0.2, 0.4, 0.7, 1.0, 2.0)  # of the shared problems' error to that of the seeds
SEEDS = (3, 5, 8, 16)
MISSES = {0.015: 1.7, 0.05: 5.2}  # level: the most percent of intervals that may miss

STARTS = 3  # starting models of the pocket world
SHARES = (0.0, 0.25, 0.5, 0.75)  # of the variance of a seed's difference, caused by its start


@dataclass(frozen=True, kw_only=True)
class Missed:
    """The percentage of intervals that miss the true mean, by the level of the interval."""

    seeds: int
    ratio: float
    percent: dict[float, float]


@dataclass(frozen=True, kw_only=True)
class MissedWithStarts:
    """The percentages of intervals at 5 % that miss the true mean, with `STARTS` starting models.

    `by_start` tests the means of the starting models, `by_seed` the seeds as if each had its own.
    """

    seeds: int
    share: float
    by_start: float
    by_seed: float


@dataclass(frozen=True, kw_only=True)
class LookRate:
    """Shares of claims decided at any look, in percent, and the mean number of seeds used.

    `effect` is in standard deviations of a seed's difference.
    """

    effect: float
    decided: float
    seeds: float


def simulate_misses(seeds: int, ratio: float, *, runs: int, seed: int = 0) -> Missed:
    """Simulate intervals of a mean over seeds that share their problems.

    The standard error of the problems is `ratio` times that of the seeds, and is known.
    """
    random = np.random.default_rng([seed, seeds, round(10 * ratio)])
    shared = ratio**2 / seeds
    values = random.standard_normal((runs, seeds))
    values += sqrt(shared) * random.standard_normal((runs, 1))
    errors, variances = np.abs(values.mean(1)), values.var(1, ddof=1) / seeds
    means = Mean(0.0, cast(float, variances), seeds - 1, shared)  # the rule, for all runs at once
    percent = {level: 100 * float(np.mean(errors > means.half_width(level))) for level in MISSES}
    return Missed(seeds=seeds, ratio=ratio, percent=percent)


def simulate_misses_with_starts(
    seeds: int, share: float, *, runs: int, seed: int = 0
) -> MissedWithStarts:
    """Simulate intervals of a mean over seeds that take `STARTS` starting models in turn.

    The starting models cause a share of the variance of a seed's difference (0 to 1).
    """
    random = np.random.default_rng([seed, seeds, round(100 * share)])
    starts = random.standard_normal((runs, STARTS))[:, np.arange(seeds) % STARTS]
    values = sqrt(share) * starts + sqrt(1 - share) * random.standard_normal((runs, seeds))
    percent = []
    for rows in (means_of_starts(values, STARTS), values):
        size = rows.shape[1]
        means = Mean(0.0, cast(float, rows.var(1, ddof=1) / size), size - 1)  # for all runs at once
        percent.append(100 * float(np.mean(np.abs(rows.mean(1)) > means.half_width(LEVEL))))
    return MissedWithStarts(seeds=seeds, share=share, by_start=percent[0], by_seed=percent[1])


def look_rate(looks: Sequence[Look], effect: float, *, runs: int, seed: int = 0) -> LookRate:
    """Simulate claims that stop at the first look that decides, in either direction.

    There must be at least one run and one look.
    """
    random = np.random.default_rng(seed)
    values = effect + random.standard_normal((runs, looks[-1].seeds))
    decided, seeds_used = np.zeros(runs, dtype=bool), np.zeros(runs)
    for look in looks:
        seeds_used[~decided] = look.seeds
        means = values[:, : look.seeds].mean(1)
        errors = values[:, : look.seeds].std(1, ddof=1) / sqrt(look.seeds)
        half = Mean(0.0, 1.0, look.seeds - 1).half_width(look.level)
        decided |= np.abs(means) > half * errors
    return LookRate(
        effect=effect, decided=100 * float(decided.mean()), seeds=float(seeds_used.mean())
    )
