"""Plans an evaluation: expected interval widths and detectable differences."""

from dataclasses import dataclass
from math import inf

from scipy.special import ndtr, ndtri

from eval.errors import BadValue
from eval.sets.benchmarks import Benchmark
from eval.stats.estimates import GATE_LEVEL, LEVEL
from eval.stats.seeds import detectable

POWER = 0.80
MOST_SEEDS = 1000
# Correlations of right and wrong over the questions of one set, from published outputs: 0.26 to
# 0.45 between single answers of two systems on GSM8K, 0.70 between samples of one system on MATH.
ACROSS, WITHIN = 0.4, 0.7


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned evaluation with its expected precision, in percentage points.

    `half_width` is half the width of one score's 95 % interval. `paired` and `unpaired` are the
    smallest true differences that a two-sided 5 % test of two systems finds with 80 % power, on the
    same problems and on different ones. `gate` is half the width of the 90 % interval: a comparison
    with a printed number can be `reproduced` only with a `margin` above `gate`, and `gate_power` is
    the probability of that verdict when the true score is the printed one.
    """

    benchmark: str
    n: int
    samples: int
    seeds: int
    rate: float
    half_width: float
    paired: float
    unpaired: float
    margin: float
    gate: float
    gate_power: float


def plan(
    benchmark: Benchmark,
    *,
    samples: int = 1,
    seeds: int = 1,
    rate: float = 50.0,
    seed_spread: float = 0.0,
    limit: int | None = None,
) -> Plan:
    """Return the precision of `samples` answers to each problem by each of `seeds` training runs.

    The correctness rate of a question varies with variance WITHIN p (1 - p), of which two systems
    share ACROSS; the remaining variance is noise of one sample and shrinks with samples and seeds.
    `rate` is the expected score in percent (50 gives the widest intervals), `seed_spread` the
    standard deviation over training seeds in points, and `limit` a smaller number of problems.

    Raises:
        BadValue: see `check_plan`.
    """
    check_plan(samples, seeds, rate, seed_spread)
    n = min(benchmark.n, limit or benchmark.n)
    problems, noise = rate * (100 - rate) / n, (1 - WITHIN) / (samples * seeds)
    single = (problems * (WITHIN + noise) + seed_spread**2 / seeds) ** 0.5
    paired = (2 * problems * (WITHIN - ACROSS + noise) + 2 * seed_spread**2 / seeds) ** 0.5
    detectable_errors = quantile((1 + LEVEL) / 2) + quantile(POWER)
    gate = quantile((1 + GATE_LEVEL) / 2) * single
    inside = max(0.0, 2 * float(ndtr((benchmark.margin - gate) / single)) - 1)
    return Plan(
        benchmark=benchmark.name,
        n=n,
        samples=samples,
        seeds=seeds,
        rate=rate,
        half_width=quantile((1 + LEVEL) / 2) * single,
        paired=detectable_errors * paired,
        unpaired=detectable_errors * 2**0.5 * single,
        margin=benchmark.margin,
        gate=gate,
        gate_power=100 * inside,
    )


def seeds_needed(effect: float, spread: float, level: float = 0.05) -> int | None:
    """Return the smallest number of seeds that detects a true effect with 80 % power.

    Args:
        effect: The distance of the effect from the bound of its claim; without one, no number does.
        spread: The standard deviation of the effect over seeds, in the same unit.
        level: Of the two-sided test of the mean over the seeds.

    Returns:
        At least 2; None if `MOST_SEEDS` do not suffice.
    """
    seeds = range(2, MOST_SEEDS + 1)
    return next((n for n in seeds if detectable(spread / n**0.5, n - 1, level) <= effect), None)


def check_plan(samples: int, seeds: int, rate: float, seed_spread: float) -> None:
    """Raise `BadValue` for numbers that no evaluation can have.

    Raises:
        BadValue: `samples` or `seeds` is below 1, `rate` is not between 0 and 100, or `seed_spread`
            is negative.
    """
    if min(samples, seeds) < 1 or not 0 < rate < 100 or not 0 <= seed_spread < inf:
        raise BadValue(
            f"samples={samples}, seeds={seeds}, rate={rate}, seed_spread={seed_spread}: expected "
            "at least 1 sample and seed, a rate above 0 and below 100 and a spread of at least 0"
        )


def quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution at probability p."""
    return float(ndtri(p))
