"""Compares two sets of scores, and a score with a printed number."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal  # Any: results that the stubs of scipy do not describe

import numpy as np
from scipy.stats import binomtest, fisher_exact, permutation_test, ttest_ind

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.stats.estimates import GATE_LEVEL, agresti_min, mean_interval, wilson

LEVEL = 0.95
PRINTED = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Comparison:
    """After minus before, in percentage points, with a 95 % interval and a two-sided p."""

    delta: float
    low: float
    high: float
    p: float
    n: int
    paired: bool
    method: str


@dataclass(frozen=True)
class Reported:
    """A score against a printed number: the 90 % interval and what it says."""

    verdict: Literal["reproduced", "below", "above", "undecided"]
    delta: float
    low: float
    high: float
    margin: float


def mcnemar(lost: int, won: int) -> float:
    """Exact two-sided p that a changed problem is as often lost as won."""
    return float(binomtest(won, lost + won).pvalue) if lost + won else 1.0


def sign_flip(differences: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of the mean difference when each sign is arbitrary; exact for few differences."""
    array = np.asarray(differences, dtype=float)
    changed = array[array != 0]
    if changed.size < 2:
        return 1.0
    found: Any = permutation_test(
        (changed,),
        np.mean,
        permutation_type="samples",  # of one sample: its signs
        n_resamples=draws,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return min(1.0, float(found.pvalue))


def holm(ps: Sequence[float]) -> list[float]:
    """Adjusted p values that keep the family-wise error: step-down Bonferroni."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted = [0.0] * len(ps)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = running
    return adjusted


def compare_scores(before: Sequence[Sample], after: Sequence[Sample]) -> Comparison:
    """Return how the share of right samples changed, paired over the problems that both sides hold.

    Sides that share fewer than two problems are compared unpaired.

    Raises:
        BadValue: one side is empty, or they are of different benchmarks.
    """
    names = {s.benchmark for s in (*before, *after)}
    if not before or not after or len(names) != 1:
        raise BadValue(
            f"{len(before)} samples before, {len(after)} after, of {sorted(names)}: "
            "expected samples of one benchmark on both sides"
        )
    old, new = by_problem(before), by_problem(after)
    single = all(len(row) == 1 for row in (*old.values(), *new.values()))
    shared = sorted(old.keys() & new.keys())
    if len(shared) > 1 or old.keys() == new.keys():
        pairs = [(old[key], new[key]) for key in shared]
        return paired_binary(pairs) if single else paired_means(pairs)
    rows = list(old.values()), list(new.values())
    return unpaired_binary(*rows) if single else unpaired_means(*rows)


def by_problem(samples: Sequence[Sample]) -> dict[str, list[bool]]:
    """Is each sample right, by problem; a sample without a verdict is not."""
    rows: dict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        rows[sample.id].append(sample.correct is True)
    return rows


Pair = tuple[list[bool], list[bool]]


def paired_binary(pairs: Sequence[Pair]) -> Comparison:
    """McNemar's exact p; the interval of Agresti and Min."""
    n = len(pairs)
    won = sum(b[0] and not a[0] for a, b in pairs)
    lost = sum(a[0] and not b[0] for a, b in pairs)
    low, high = agresti_min(won, lost, n)
    return percent((won - lost) / n, low, high, mcnemar(lost, won), n, True, "mcnemar")


def paired_means(pairs: Sequence[Pair]) -> Comparison:
    """Sign-flip p and Student's interval of the problems' differences."""
    differences = [float(np.mean(b)) - float(np.mean(a)) for a, b in pairs]
    found = mean_interval(differences)
    p = sign_flip(differences)
    return percent(found.value, found.low, found.high, p, len(pairs), True, "sign-flip")


def unpaired_binary(old: Sequence[list[bool]], new: Sequence[list[bool]]) -> Comparison:
    """Fisher's exact p; Newcombe's interval, made of both sides' Wilson intervals."""
    (x, n), (y, m) = ((sum(row[0] for row in rows), len(rows)) for rows in (old, new))
    (low_x, high_x), (low_y, high_y) = wilson(x, n), wilson(y, m)
    before, after = x / n, y / m
    low = after - before - ((after - low_y) ** 2 + (high_x - before) ** 2) ** 0.5
    high = after - before + ((high_y - after) ** 2 + (before - low_x) ** 2) ** 0.5
    tested: Any = fisher_exact([[x, n - x], [y, m - y]])
    p = float(tested.pvalue)
    return percent(after - before, low, high, p, min(n, m), False, "fisher")


def unpaired_means(old: Sequence[list[bool]], new: Sequence[list[bool]]) -> Comparison:
    """Welch's t over the problems' means."""
    before, after = ([float(np.mean(row)) for row in rows] for rows in (old, new))
    if min(len(before), len(after)) < 2 or min(np.std(before), np.std(after)) == 0:
        wide = mean_interval(before), mean_interval(after)
        low, high = wide[1].low - wide[0].high, wide[1].high - wide[0].low
        delta = wide[1].value - wide[0].value
        return percent(delta, low, high, float(low <= 0 <= high), len(after), False, "no spread")
    found: Any = ttest_ind(after, before, equal_var=False)
    bounds = found.confidence_interval(LEVEL)
    delta = float(np.mean(after) - np.mean(before))
    n = min(len(before), len(after))
    return percent(delta, bounds.low, bounds.high, float(found.pvalue), n, False, "welch")


def percent(
    delta: float, low: float, high: float, p: float, n: int, paired: bool, method: str
) -> Comparison:
    """Return the comparison in percentage points; no change of a share exceeds 100 of them."""
    bounds = max(-100.0, 100 * float(low)), min(100.0, 100 * float(high))
    return Comparison(100 * delta, *bounds, p, n, paired, method)


def compare_reported(
    right: int, n: int, reported: float, margin: float, *, rounding: float = 0.05
) -> Reported:
    """Two one-sided score tests of one run's count against a printed percentage."""
    low, high = (100 * bound for bound in wilson(right, n, GATE_LEVEL))
    return gate(100 * right / n, low, high, reported, margin, rounding)


def gate(
    value: float, low: float, high: float, reported: float, margin: float, rounding: float
) -> Reported:
    """What a score with its 90 % interval says about a printed percentage.

    `reproduced` when the interval lies within `margin` points of what the printed digits can
    stand for (51.7 is 51.65 to 51.75 with `rounding` 0.05); `below` or `above` when it lies
    outside altogether; else `undecided`.
    """
    floor, ceiling = reported - rounding - margin, reported + rounding + margin
    verdict: Literal["reproduced", "below", "above", "undecided"] = "undecided"
    if floor <= low and high <= ceiling:
        verdict = "reproduced"
    elif high < floor:
        verdict = "below"
    elif low > ceiling:
        verdict = "above"
    return Reported(verdict, value - reported, low, high, margin)


def printed_number(text: str) -> tuple[float, float]:
    """A percentage as printed, and half a unit of its last digit: `51.7` is 51.7 and 0.05.

    Raises:
        BadValue: it is no number from 0 to 100.
    """
    if not PRINTED.fullmatch(text) or not 0 <= float(text) <= 100:
        raise BadValue(f"printed score {text!r}: expected a percentage such as 51.7")
    return float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])
