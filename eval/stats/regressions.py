"""Whether runs score lower than the accepted ones: over all arms, for each arm, on each suite.

Runs that differ only in their seeds differ by a part that all suites of a run share, and by one of
each suite. How large these are is known from the runs of the pocket world and counts as much as
`KNOWN` differences; the spread of the differences at hand is pooled with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.stats import t

# Standard deviations between seeds, in points: what a run's suites share, and each suite's own.
SHARED, OWN = 1.0, 1.35
KNOWN = 10  # degrees of freedom of these
LEVELS = {"all": 0.015, "arm": 0.003, "suite": 0.035}  # one-sided; the rates are in reports/gate.md
MARGIN = 0.5  # points: what is lost must also be more than this


@dataclass(frozen=True)
class Difference:
    """What a run scores more than the accepted one on a suite, in points, and by which changes."""

    arm: str
    run: str
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


def found_drops(differences: list[Difference]) -> Iterator[Drop]:
    """What fell; on suites only where neither all arms nor their own arm did."""
    arms = table(differences)
    if not arms:
        return
    sizes = {name: rows.shape for name, rows in arms.items()}
    suites = next(iter(sizes.values()))[1]
    own = max(2 * OWN**2, 1e4 * float(np.mean([d.changed / d.n for d in differences])))
    run_means = {name: rows.mean(axis=1) for name, rows in arms.items()}
    error, df = pooled(run_means, 2 * SHARED**2 + own / suites)
    everything = np.concatenate(list(run_means.values()))
    worst = hints(differences)
    fell = {"": tested(everything, error, df, LEVELS["all"])}
    fell |= {a: tested(v, error, df, LEVELS["arm"] / len(arms)) for a, v in run_means.items()}
    for arm, found in fell.items():
        if found is not None:
            what = f"arm {arm}" if arm else "all arms together"
            yield Drop(what, *found, most=worst[arm])
    if fell[""] is None:
        left = {arm: rows for arm, rows in arms.items() if fell[arm] is None}
        yield from suite_drops(left, own, len(arms) * suites, suite_names(differences))


def suite_drops(
    arms: Mapping[str, np.ndarray], own: float, tests: int, names: list[str]
) -> Iterator[Drop]:
    """Suites of an arm that fell, less the part that the run's other suites predict."""
    for place, name in enumerate(names):
        rest = {arm: apart(rows, place, own) for arm, rows in arms.items()}
        error, df = pooled(rest, apart_variance(len(names), own))
        for arm, values in rest.items():
            found = tested(values, error, df, LEVELS["suite"] / tests)
            if found is not None:
                yield Drop(f"arm {arm}, {name}", *found)


def apart(rows: np.ndarray, place: int, own: float) -> np.ndarray:
    """A suite's differences less what the mean of the run's other suites predicts."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    others = np.delete(rows, place, axis=1).mean(axis=1)
    return rows[:, place] - slope(rows.shape[1], own) * others


def slope(suites: int, own: float) -> float:
    """How far a suite follows the mean of the others: by what they share."""
    shared = 2 * SHARED**2
    return shared / (shared + own / (suites - 1)) if suites > 1 else 0.0


def apart_variance(suites: int, own: float) -> float:
    """The variance of `apart` between seeds."""
    shared = 2 * SHARED**2
    return shared + own - slope(suites, own) * shared


def pooled(groups: Mapping[str, np.ndarray], known: float) -> tuple[float, float]:
    """The variance of one difference, pooled over the groups and with what is known; its df.

    Only the spread of the groups is uncertain, so Satterthwaite's df count that part alone.
    """
    df = sum(len(values) - 1 for values in groups.values())
    spread = sum(float(((values - values.mean()) ** 2).sum()) for values in groups.values())
    return (KNOWN * known + spread) / (KNOWN + df), (KNOWN + df) ** 2 / df if df else inf


def tested(
    values: np.ndarray, variance: float, df: float, level: float
) -> tuple[float, float] | None:
    """The mean difference and its one-sided p, if it is a drop at this level."""
    delta = float(values.mean())
    p = float(t.cdf(delta / (variance / len(values)) ** 0.5, df))
    return (delta, p) if p < level and delta < -MARGIN else None


def table(differences: list[Difference]) -> dict[str, np.ndarray]:
    """For each arm its runs' differences, a row each, on the suites that all of them have."""
    suites = suite_names(differences)
    found = {(d.arm, d.run, d.suite): d.delta for d in differences}
    arms: dict[str, list[list[float]]] = {}
    for arm, run in dict.fromkeys((d.arm, d.run) for d in differences):
        arms.setdefault(arm, []).append([found[arm, run, suite] for suite in suites])
    return {arm: np.array(rows) for arm, rows in arms.items() if suites}


def suite_names(differences: list[Difference]) -> list[str]:
    """The suites that every run has, in the order of the first."""
    runs = {d.run for d in differences}
    names = dict.fromkeys(d.suite for d in differences)
    return [name for name in names if {d.run for d in differences if d.suite == name} >= runs]


def hints(differences: list[Difference]) -> dict[str, str]:
    """For each arm, and under "" for all, where most was lost."""
    found: dict[str, str] = {}
    for arm in ("", *dict.fromkeys(d.arm for d in differences)):
        own = [d for d in differences if arm in ("", d.arm)]
        by = {
            (d.arm, d.suite): [e.delta for e in own if (e.arm, e.suite) == (d.arm, d.suite)]
            for d in own
        }
        worst = min(by, key=lambda key: float(np.mean(by[key])))
        found[arm] = f"{worst[0]}, {worst[1]} by {float(np.mean(by[worst])):+.1f}"
    return found
