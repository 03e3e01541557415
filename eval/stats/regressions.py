"""Whether runs score lower than the accepted ones: over all arms, for each arm, on each suite.

Runs with other seeds differ by a part that all suites of a run share, and by one of each suite.
Arms of one seed move together, for seeds differ by the start policy and the order of the data,
which all arms of a seed have: all arms of a seed are one value. How large the parts are is known
from runs of the pocket world, as well as `KNOWN` degrees of freedom tell; runs that change fewer
answers differ by less: the shared part by that much less, a suite's own by the square root of it.
The spread of the differences at hand is pooled with what is known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

# Standard deviations between seeds, in points: what a run's suites share, and each suite's own.
SHARED, OWN = 2.06, 1.62
CHANGED = 0.17  # share of the problems that only one of two seeds solves
KNOWN = 5  # degrees of freedom of these
LEVELS = {"all": 0.03, "arm": 0.005, "suite": 0.045}  # one-sided; the rates are in reports/gate.md
MARGIN = 0.5  # points: what is lost must also be more than this


@dataclass(frozen=True)
class Difference:
    """What a run scores more than the accepted one on a suite, in points, and by which changes."""

    arm: str
    seed: int
    suite: str
    delta: float
    changed: float  # share of the problems that only one of both solves
    n: int


@dataclass(frozen=True)
class Drop:
    """A fall larger than other seeds explain; `most` says where most was lost."""

    what: str
    delta: float
    p: float
    most: str = ""


@dataclass(frozen=True)
class PerSeed:
    """A value of each seed, and the variance between seeds that is known of them."""

    values: NDArray[np.float64]
    variance: float


@dataclass(frozen=True)
class Runs:
    """Differences, a row for each seed and a column for each suite, and their variances."""

    deltas: NDArray[np.float64]
    shared: float
    own: float

    @property
    def means(self) -> PerSeed:
        """Each seed's mean over the suites."""
        return PerSeed(self.deltas.mean(axis=1), self.shared + self.own / self.deltas.shape[1])

    def apart(self, place: int) -> PerSeed:
        """One suite's, less what the mean of the other suites predicts by what they share."""
        others = self.deltas.shape[1] - 1
        if not others or not self.own:
            return PerSeed(self.deltas[:, place], self.shared + self.own)
        slope = self.shared / (self.shared + self.own / others)
        rest = np.delete(self.deltas, place, axis=1).mean(axis=1)
        variance = self.shared + self.own - slope * self.shared
        return PerSeed(self.deltas[:, place] - slope * rest, variance)


def found_drops(differences: Sequence[Difference]) -> Iterator[Drop]:
    """What fell; on suites only where neither all arms nor their own arm did."""
    suites = suite_names(differences)
    if not suites:
        return
    arms = {
        arm: runs_of([d for d in differences if d.arm == arm], suites)
        for arm in dict.fromkeys(d.arm for d in differences)
    }
    found = tested({"": runs_of(differences, suites).means}, LEVELS["all"])
    found |= tested({arm: runs.means for arm, runs in arms.items()}, LEVELS["arm"] / len(arms))
    for arm, drop in found.items():
        what = f"arm {arm}" if arm else "all arms together"
        yield Drop(what, *drop, most=worst(differences, arm))
    if "" in found:
        return
    left = {arm: runs for arm, runs in arms.items() if arm not in found}
    level = LEVELS["suite"] / (len(arms) * len(suites))
    for place, suite in enumerate(suites):
        for arm, drop in tested({a: runs.apart(place) for a, runs in left.items()}, level).items():
            yield Drop(f"arm {arm}, {suite}", *drop)


def tested(samples: Mapping[str, PerSeed], level: float) -> dict[str, tuple[float, float]]:
    """The samples whose mean is a drop at this level: their mean and its one-sided p."""
    factor, df = pooled([s for s in samples.values() if s.variance])
    found: dict[str, tuple[float, float]] = {}
    for name, sample in samples.items():
        delta = float(sample.values.mean())
        if delta < -MARGIN:
            error = (factor * sample.variance / len(sample.values)) ** 0.5
            p = float(t.cdf(delta / error, df))
            found |= {name: (delta, p)} if p < level else {}
    return found


def pooled(samples: Sequence[PerSeed]) -> tuple[float, int]:
    """By how much the variances are other than known, by the samples' own spread too; its df.

    Samples that move together tell no more than one of them, so all count as the longest.
    """
    degrees = sum(len(s.values) - 1 for s in samples)
    if not degrees:
        return 1.0, KNOWN
    spread = sum(float(((s.values - s.values.mean()) ** 2).sum()) / s.variance for s in samples)
    df = max(len(s.values) for s in samples) - 1
    return (KNOWN + df * spread / degrees) / (KNOWN + df), KNOWN + df


def runs_of(differences: Sequence[Difference], suites: Sequence[str]) -> Runs:
    """One row a seed, of the mean of its arms, and the variances that changed answers allow."""
    seeds: dict[int, list[Difference]] = {}
    for difference in differences:
        seeds.setdefault(difference.seed, []).append(difference)
    deltas = [[fmean(d.delta for d in of if d.suite == s) for s in suites] for of in seeds.values()]
    parts = [min(1.0, fmean(d.changed for d in of) / CHANGED) for of in seeds.values()]
    drawn = 1e4 * fmean(d.changed / d.n for d in differences)
    return Runs(
        np.array(deltas),
        shared=2 * SHARED**2 * fmean(part**2 for part in parts),
        own=max(2 * OWN**2 * fmean(parts), drawn),
    )


def suite_names(differences: Sequence[Difference]) -> list[str]:
    """The suites that every run has, in the order of the first."""
    having: dict[str, set[tuple[str, int]]] = {}
    for d in differences:
        having.setdefault(d.suite, set()).add((d.arm, d.seed))
    every = set[tuple[str, int]]().union(*having.values())
    return [suite for suite, runs in having.items() if runs == every]


def worst(differences: Sequence[Difference], arm: str) -> str:
    """Where an arm lost most, or, under "", where all did."""
    by: dict[tuple[str, str], list[float]] = {}
    for d in differences:
        if arm in ("", d.arm):
            by.setdefault((d.arm, d.suite), []).append(d.delta)
    place = min(by, key=lambda place: fmean(by[place]))
    return f"{place[0]}, {place[1]} by {fmean(by[place]):+.1f}"
