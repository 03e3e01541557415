"""Compares two sets of graded samples, and a score with a printed number."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np
from scipy.stats import binomtest, fisher_exact, permutation_test, ttest_ind

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.stats.estimates import GATE_LEVEL, agresti_min, mean_interval, wilson

LEVEL = 0.95
PRINTED = re.compile(r"\d+(\.\d+)?")


class Bounds(Protocol):
    """The two ends of a confidence interval of scipy."""

    low: float
    high: float


class ScipyTest(Protocol):
    """The fields of scipy's test results that are used here; scipy's stubs lack them."""

    pvalue: float

    def confidence_interval(self, confidence_level: float) -> Bounds:
        """Return the confidence interval of the tested statistic."""
        ...


@dataclass(frozen=True)
class Comparison:
    """The change of a score from `before` to `after` in percentage points.

    `low` and `high` bound its 95 % interval, `p` is two-sided and `n` the number of problems.
    """

    delta: float
    low: float
    high: float
    p: float
    n: int
    paired: bool
    method: str


@dataclass(frozen=True)
class Reported:
    """The verdict on a score against a printed number, with the score's 90 % interval in percent.

    `delta` is the score minus the printed number; `margin` the tolerance, in percentage points.
    """

    verdict: Literal["reproduced", "below", "above", "undecided"]
    delta: float
    low: float
    high: float
    margin: float


def mcnemar(lost: int, won: int) -> float:
    """Return the exact two-sided p value of McNemar's test; 1 if no problem changed.

    Args:
        lost: Problems solved before and not after.
        won: Problems solved after and not before.
    """
    return float(binomtest(won, lost + won).pvalue) if lost + won else 1.0


def sign_flip(differences: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p value of a sign-flip permutation test of the mean difference.

    The p value is exact where all sign patterns can be enumerated within `draws`, and 1 with fewer
    than two non-zero differences.
    """
    array = np.asarray(differences, dtype=float)
    changed = array[array != 0]
    if changed.size < 2:
        return 1.0
    permutation = permutation_test(
        (changed,),
        np.mean,
        permutation_type="samples",  # with one sample, this flips the signs
        n_resamples=draws,
        batch=1000,
        rng=np.random.default_rng(seed),
    )
    return min(1.0, float(cast(ScipyTest, permutation).pvalue))


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values adjusted by Holm's step-down Bonferroni method, in the order of `ps`."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted = [0.0] * len(ps)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = running
    return adjusted


def compare_scores(before: Sequence[Sample], after: Sequence[Sample]) -> Comparison:
    """Return the change of the share of correct samples, paired over the problems of both sides.

    Sides that share fewer than two problems are compared unpaired.

    Raises:
        BadValue: one side is empty, or the samples are of more than one benchmark.
    """
    check_one_benchmark(before, after)
    old, new = correct_by_problem(before), correct_by_problem(after)
    single = all(len(row) == 1 for row in (*old.values(), *new.values()))
    shared = sorted(old.keys() & new.keys())
    if len(shared) > 1 or old.keys() == new.keys():
        pairs = [(old[key], new[key]) for key in shared]
        return paired_binary(pairs) if single else paired_means(pairs)
    rows = list(old.values()), list(new.values())
    return unpaired_binary(*rows) if single else unpaired_means(*rows)


def check_one_benchmark(before: Sequence[Sample], after: Sequence[Sample]) -> None:
    """Raise `BadValue` unless both sides have samples, all of one benchmark."""
    names = {s.benchmark for s in (*before, *after)}
    if not before or not after or len(names) != 1:
        raise BadValue(
            f"{len(before)} samples before, {len(after)} after, of {sorted(names)}: "
            "expected samples of one benchmark on both sides"
        )


def correct_by_problem(samples: Sequence[Sample]) -> dict[str, list[bool]]:
    """Return whether each sample is correct, grouped by problem id.

    A sample without a verdict counts as incorrect.
    """
    rows: dict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        rows[sample.id].append(sample.correct is True)
    return rows


Pair = tuple[list[bool], list[bool]]


def paired_binary(pairs: Sequence[Pair]) -> Comparison:
    """Compare single samples of the same problems: McNemar's test, Agresti-Min interval."""
    n = len(pairs)
    won = sum(b[0] and not a[0] for a, b in pairs)
    lost = sum(a[0] and not b[0] for a, b in pairs)
    low, high = agresti_min(won, lost, n)
    return percent((won - lost) / n, low, high, mcnemar(lost, won), n, True, "mcnemar")


def paired_means(pairs: Sequence[Pair]) -> Comparison:
    """Compare the mean scores of the same problems by a sign-flip test and Student's interval.

    Args:
        pairs: For each problem the scores (0 to 1) of the first and of the second system.

    Returns:
        The difference second minus first in percent.
    """
    differences = [float(np.mean(b)) - float(np.mean(a)) for a, b in pairs]
    estimate = mean_interval(differences)
    p = sign_flip(differences)
    return percent(estimate.value, estimate.low, estimate.high, p, len(pairs), True, "sign-flip")


def unpaired_binary(old: Sequence[list[bool]], new: Sequence[list[bool]]) -> Comparison:
    """Compare single samples of different problems by Fisher's exact test.

    The interval is Newcombe's, made of the Wilson intervals of both sides.
    """
    (x, n), (y, m) = ((sum(row[0] for row in rows), len(rows)) for rows in (old, new))
    (low_x, high_x), (low_y, high_y) = wilson(x, n), wilson(y, m)
    before, after = x / n, y / m
    low = after - before - ((after - low_y) ** 2 + (high_x - before) ** 2) ** 0.5
    high = after - before + ((high_y - after) ** 2 + (before - low_x) ** 2) ** 0.5
    fisher = cast(ScipyTest, fisher_exact([[x, n - x], [y, m - y]]))
    p = float(fisher.pvalue)
    return percent(after - before, low, high, p, min(n, m), False, "fisher")


def unpaired_means(old: Sequence[list[bool]], new: Sequence[list[bool]]) -> Comparison:
    """Compare the mean scores of different problems by Welch's t test.

    Where one side has fewer than two problems or no spread, the interval is the difference of both
    sides' own intervals, and p is 1 if it contains zero, else 0.
    """
    before, after = ([float(np.mean(row)) for row in rows] for rows in (old, new))
    if min(len(before), len(after)) < 2 or min(np.std(before), np.std(after)) == 0:
        intervals = mean_interval(before), mean_interval(after)
        low, high = intervals[1].low - intervals[0].high, intervals[1].high - intervals[0].low
        delta = intervals[1].value - intervals[0].value
        return percent(delta, low, high, float(low <= 0 <= high), len(after), False, "no spread")
    welch = cast(ScipyTest, ttest_ind(after, before, equal_var=False))
    bounds = welch.confidence_interval(LEVEL)
    delta = float(np.mean(after) - np.mean(before))
    n = min(len(before), len(after))
    return percent(delta, bounds.low, bounds.high, float(welch.pvalue), n, False, "welch")


def percent(
    delta: float, low: float, high: float, p: float, n: int, paired: bool, method: str
) -> Comparison:
    """Return a comparison in percentage points, its interval cut off at -100 and 100."""
    bounds = max(-100.0, 100 * float(low)), min(100.0, 100 * float(high))
    return Comparison(100 * delta, *bounds, p, n, paired, method)


def compare_reported(
    right: int, n: int, reported: float, margin: float, *, rounding: float = 0.05
) -> Reported:
    """Compare the count of correct problems of one run with a printed percentage; see `gate`."""
    low, high = (100 * bound for bound in wilson(right, n, GATE_LEVEL))
    return gate(100 * right / n, low, high, reported, margin, rounding)


def gate(
    value: float, low: float, high: float, reported: float, margin: float, rounding: float
) -> Reported:
    """Return the verdict on a score with its 90 % interval against a printed percentage.

    It is `reproduced` when the interval lies within `margin` points of the numbers that round to
    the printed one (51.7 stands for 51.65 to 51.75 with `rounding` 0.05), `below` or `above` when
    the interval lies entirely outside that range, and `undecided` otherwise.
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
    """Parse a printed percentage; return it and half a unit of its last digit.

    `51.7` gives (51.7, 0.05).

    Raises:
        BadValue: the text is not a number from 0 to 100.
    """
    if not PRINTED.fullmatch(text) or not 0 <= float(text) <= 100:
        raise BadValue(f"printed score {text!r}: expected a percentage such as 51.7")
    return float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])
