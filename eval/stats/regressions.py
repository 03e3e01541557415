"""Tests whether runs score lower than the accepted ones: all arms, each arm, each suite.

Runs with other seeds differ by one part that all suites of a run share and by one part of each
suite. Arms of one seed have the same start policy and order of the data, so their scores are
averaged to one value for each seed. The variances of both parts were measured on runs of the pocket
world, with `KNOWN` degrees of freedom. Runs that change fewer answers differ by less: the standard
deviation of the shared part is proportional to the share of changed answers, that of a suite's own
part to its square root. The spread of the compared differences is pooled with the measured one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

# Standard deviations between seeds, in points: of the part that a run's suites share, and of the
# part of each suite.
SHARED, OWN = 2.06, 1.62
CHANGED = 0.17  # share of the problems that only one of two seeds solves
KNOWN = 5  # degrees of freedom of these
LEVELS = {"all": 0.03, "arm": 0.005, "suite": 0.045}  # one-sided; the rates are in reports/gate.md
MARGIN = 0.5  # points: a smaller loss is never a drop


@dataclass(frozen=True)
class Difference:
    """The score of a new run minus that of the accepted one on one suite, in points."""

    arm: str
    seed: int
    suite: str
    delta: float
    changed: float  # share of the problems that only one of both solves
    n: int


@dataclass(frozen=True)
class Drop:
    """A fall of the score that is larger than other seeds explain.

    `scope` names the arms and the suite, `delta` is in points, `p` is one-sided, and `largest_loss`
    names the arm and suite that lost most.
    """

    scope: str
    delta: float
    p: float
    largest_loss: str = ""


@dataclass(frozen=True)
class PerSeed:
    """A value for each seed, and the variance between seeds known from earlier runs."""

    values: NDArray[np.float64]
    variance: float


@dataclass(frozen=True)
class Runs:
    """Differences in points, of shape (seeds, suites), and the variances of their two parts."""

    deltas: NDArray[np.float64]
    shared_variance: float
    suite_variance: float

    @property
    def means(self) -> PerSeed:
        """The mean over the suites for each seed."""
        variance = self.shared_variance + self.suite_variance / self.deltas.shape[1]
        return PerSeed(self.deltas.mean(axis=1), variance)

    def suite_residuals(self, place: int) -> PerSeed:
        """Return one suite's differences less their prediction from the other suites' mean."""
        shared, own_variance = self.shared_variance, self.suite_variance
        other_suites = self.deltas.shape[1] - 1
        if not other_suites or not own_variance:
            return PerSeed(self.deltas[:, place], shared + own_variance)
        slope = shared / (shared + own_variance / other_suites)
        other_mean = np.delete(self.deltas, place, axis=1).mean(axis=1)
        variance = shared + own_variance - slope * shared
        return PerSeed(self.deltas[:, place] - slope * other_mean, variance)


def find_drops(differences: Sequence[Difference]) -> Iterator[Drop]:
    """Yield the significant drops: over all arms, then of single arms, then of single suites.

    Suites are tested only if the scores over all arms did not drop, and only in arms that did not.
    """
    suites = suite_names(differences)
    if not suites:
        return
    arms = runs_by_arm(differences, suites)
    level = LEVELS["arm"] / len(arms)
    drops = significant_drops({"": runs_of(differences, suites).means}, LEVELS["all"])
    drops |= significant_drops({arm: runs.means for arm, runs in arms.items()}, level)
    for arm, drop in drops.items():
        scope = f"arm {arm}" if arm else "all arms together"
        yield Drop(scope, *drop, largest_loss=describe_largest_loss(differences, arm))
    if "" in drops:
        return
    yield from suite_drops(
        {a: runs for a, runs in arms.items() if a not in drops}, suites, len(arms)
    )


def runs_by_arm(differences: Sequence[Difference], suites: Sequence[str]) -> dict[str, Runs]:
    """Return the runs of each arm on the suites, in the order of the differences."""
    return {
        arm: runs_of([d for d in differences if d.arm == arm], suites)
        for arm in dict.fromkeys(d.arm for d in differences)
    }


def suite_drops(runs: Mapping[str, Runs], suites: Sequence[str], arms: int) -> Iterator[Drop]:
    """Yield the significant drops of single suites, at a level shared by the suites of `arms`."""
    level = LEVELS["suite"] / (arms * len(suites))
    for place, suite in enumerate(suites):
        residuals = {arm: run.suite_residuals(place) for arm, run in runs.items()}
        for arm, drop in significant_drops(residuals, level).items():
            yield Drop(f"arm {arm}, {suite}", *drop)


def significant_drops(
    samples: Mapping[str, PerSeed], level: float
) -> dict[str, tuple[float, float]]:
    """Return the mean and the one-sided p value of each sample whose mean dropped at this level.

    A loss of up to MARGIN points is no drop. The variances are pooled over all samples.
    """
    factor, df = pool_variances([s for s in samples.values() if s.variance])
    drops: dict[str, tuple[float, float]] = {}
    for name, sample in samples.items():
        delta = float(sample.values.mean())
        if delta < -MARGIN:
            error = (factor * sample.variance / len(sample.values)) ** 0.5
            p = float(t.cdf(delta / error, df))
            if p < level:
                drops[name] = (delta, p)
    return drops


def pool_variances(samples: Sequence[PerSeed]) -> tuple[float, int]:
    """Return the factor from expected to pooled variances, and the pooled degrees of freedom.

    Samples that move together give no more information than one of them, so the degrees of freedom
    added are those of the longest sample.
    """
    degrees = sum(len(s.values) - 1 for s in samples)
    if not degrees:
        return 1.0, KNOWN
    spread = sum(float(((s.values - s.values.mean()) ** 2).sum()) / s.variance for s in samples)
    df = max(len(s.values) for s in samples) - 1
    return (KNOWN + df * spread / degrees) / (KNOWN + df), KNOWN + df


def runs_of(differences: Sequence[Difference], suites: Sequence[str]) -> Runs:
    """Average the arms of each seed and scale the variances by the share of changed answers.

    There must be a difference for each seed and suite.
    """
    by_seed: dict[int, list[Difference]] = {}
    for difference in differences:
        by_seed.setdefault(difference.seed, []).append(difference)
    rows = list(by_seed.values())
    deltas = [[fmean(d.delta for d in row if d.suite == s) for s in suites] for row in rows]
    parts = [min(1.0, fmean(d.changed for d in row) / CHANGED) for row in rows]
    sampling_variance = 1e4 * fmean(d.changed / d.n for d in differences)
    return Runs(
        np.array(deltas),
        shared_variance=2 * SHARED**2 * fmean(part**2 for part in parts),
        suite_variance=max(2 * OWN**2 * fmean(parts), sampling_variance),
    )


def suite_names(differences: Sequence[Difference]) -> list[str]:
    """Return the suites that every run has, in the order of their first appearance."""
    runs_by_suite: dict[str, set[tuple[str, int]]] = {}
    for d in differences:
        runs_by_suite.setdefault(d.suite, set()).add((d.arm, d.seed))
    all_runs = set[tuple[str, int]]().union(*runs_by_suite.values())
    return [suite for suite, runs in runs_by_suite.items() if runs == all_runs]


def describe_largest_loss(differences: Sequence[Difference], arm: str) -> str:
    """Return the arm and suite with the largest mean loss, among all arms if `arm` is empty.

    Raises:
        ValueError: the arm has no differences.
    """
    deltas: dict[tuple[str, str], list[float]] = {}
    for d in differences:
        if arm in ("", d.arm):
            deltas.setdefault((d.arm, d.suite), []).append(d.delta)
    place = min(deltas, key=lambda place: fmean(deltas[place]))
    return f"{place[0]}, {place[1]} by {fmean(deltas[place]):+.1f}"
