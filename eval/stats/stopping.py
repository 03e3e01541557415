"""Decides whether more seeds are worth their cost: the chance that a later look decides."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from eval.stats.seeds import Look, Mean, decide, over_seeds, seed_effect

WORTHWHILE = 0.10  # a claim with a smaller chance of being decided gets no more seeds
DRAWS = 1000


def conditional_power(
    differences: Sequence[float],
    looks: Sequence[Look],
    margin: float = 0.0,
    op: str = ">",
    *,
    shared: float = 0.0,
    equal: float = 0.0,
    starts: int | None = None,
) -> float:
    """Return the probability (0 to 1) that one of the later looks decides, for a side or a tie.

    The seeds to come are drawn from the normal distribution with the mean and the deviation of the
    seeds so far, `DRAWS` times. The result is the same in every call.

    Args:
        differences: left - right of each seed so far, at least two.
        looks: the later looks, in order, each with more seeds than there are.
        margin: of the claim, as all that follow in the form that `seed_effect` takes.
        op: the relation of the claim.
        shared: variance of the mean caused by problems that all seeds share.
        equal: size below which a difference counts as none.
        starts: the number of starting models, which the seeds take in turn and whose means are
            the replications; None if each seed is one.
    """
    n, last = len(differences), looks[-1].seeds
    mean = over_seeds(differences, shared=shared)
    if mean is None:  # without any spread, further seeds would give the same value
        sizes = [(min(look.seeds, starts or look.seeds), look.level) for look in looks]
        return float(any(is_decided(differences[0], *size, margin, op, equal) for size in sizes))
    normal = np.random.default_rng(0).standard_normal((DRAWS, last - n))
    future = mean.value + sqrt(n * mean.own) * normal
    seeds = np.hstack([np.tile(differences, (DRAWS, 1)), future])
    decided = np.zeros(DRAWS, dtype=bool)
    for look in looks:
        means = drawn_means(seeds[:, : look.seeds], starts, shared)
        for draw in np.flatnonzero(~decided):
            outer, inner = (means[draw].interval(level) for level in (look.level, 2 * look.level))
            decided[draw] = decide(outer, inner, margin, op, equal) != "undecided"
    return float(decided.mean())


def is_decided(
    value: float, seeds: int, level: float, margin: float, op: str, equal: float
) -> bool:
    """Return whether equal differences of so many seeds are decided at a level."""
    effect = seed_effect([value] * seeds, margin, op, level=level, equal=equal)
    return effect.verdict != "undecided"


def drawn_means(seeds: NDArray[np.float64], starts: int | None, shared: float) -> list[Mean]:
    """Return the mean over the replications of each draw; `seeds` has the shape (draws, seeds)."""
    values = means_of_starts(seeds, starts)
    size = values.shape[1]
    rows = zip(values.mean(1), values.var(1, ddof=1) / size, strict=True)
    return [Mean(float(mean), float(variance), size - 1, shared) for mean, variance in rows]


def means_of_starts(seeds: NDArray[np.float64], starts: int | None) -> NDArray[np.float64]:
    """Return the mean of each starting model's seeds, or the seeds if each has its own.

    Args:
        seeds: values of shape (draws, seeds).
        starts: the number of starting models, which the seeds take in turn.
    """
    if starts is None or seeds.shape[1] <= starts:
        return seeds
    return np.stack([seeds[:, start::starts].mean(1) for start in range(starts)], axis=1)
