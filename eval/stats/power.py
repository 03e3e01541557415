"""What a planned evaluation can see, before it runs: interval widths and detectable differences."""

from dataclasses import dataclass
from math import inf

from scipy.special import ndtr, ndtri

from eval.errors import BadValue
from eval.sets.benchmarks import Benchmark
from eval.stats.estimates import GATE_LEVEL, LEVEL

POWER = 0.80
# Correlations of right and wrong over the questions of one set, from published outputs: 0.26 to
# 0.45 between single answers of two systems on GSM8K, 0.70 between samples of one system on MATH.
ACROSS, WITHIN = 0.4, 0.7


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned evaluation and what it can see, all in percentage points.

    `half_width` is that of one score's 95 % interval; `paired` and `unpaired` the smallest true
    difference that a two-sided 5 % test of two systems finds with 80 % power, on the same problems
    and on different ones. `gate` is the 90 % half width: a comparison with a printed number can
    say `reproduced` only with a `margin` above it, and `gate_power` is the chance that it does
    when the true score is the printed one.
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
    """What `samples` answers to each problem by each of `seeds` training runs can show.

    A question's rate varies with variance WITHIN p (1 - p), of which two systems share ACROSS;
    the rest is the noise of one sample and shrinks with samples and seeds. `rate` is the expected
    score (50 is the widest), `seed_spread` the standard deviation over training seeds in points.
    """
    check_plan(samples, seeds, rate, seed_spread)
    n = min(benchmark.n, limit or benchmark.n)
    unit = rate * (100 - rate) / n
    noise = (1 - WITHIN) / (samples * seeds)
    seeded = seed_spread**2 / seeds
    single = (unit * (WITHIN + noise) + seeded) ** 0.5
    paired = (2 * unit * (WITHIN - ACROSS + noise) + 2 * seeded) ** 0.5
    seen = quantile((1 + LEVEL) / 2) + quantile(POWER)
    gate = quantile((1 + GATE_LEVEL) / 2) * single
    inside = max(0.0, 2 * float(ndtr((benchmark.margin - gate) / single)) - 1)
    return Plan(
        benchmark=benchmark.name,
        n=n,
        samples=samples,
        seeds=seeds,
        rate=rate,
        half_width=quantile((1 + LEVEL) / 2) * single,
        paired=seen * paired,
        unpaired=seen * 2**0.5 * single,
        margin=benchmark.margin,
        gate=gate,
        gate_power=100 * inside,
    )


def check_plan(samples: int, seeds: int, rate: float, seed_spread: float) -> None:
    """Refuse what nobody can plan.

    Raises:
        BadValue: a number of samples or seeds below 1, a rate outside 0 to 100, a negative spread.
    """
    if min(samples, seeds) < 1 or not 0 < rate < 100 or not 0 <= seed_spread < inf:
        raise BadValue(
            f"samples={samples}, seeds={seeds}, rate={rate}, seed_spread={seed_spread}: expected "
            "at least 1 sample and seed, a rate above 0 and below 100 and a spread of at least 0"
        )


def quantile(p: float) -> float:
    """Of the standard normal distribution."""
    return float(ndtri(p))
