"""What scatters in the runs of a paper: measured, for the simulation of error rates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.paper import Paper
from core.records.schema import RunRecord
from core.verdicts.shared_problems import by_problem_at

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two arms over the seeds that they share, and what they differ by beside their effect.

    `excess` is the variance over seeds of their mean difference, in squared points, less what the
    drawing of the problems gives; `alike` the mean correlation of their answers to one problem.
    """

    arms: tuple[str, str]
    freedom: int
    excess: float
    alike: float

    @property
    def training(self) -> float:
        """Each arm's own standard deviation over seeds, in points: training, and start policy."""
        return own_deviation(self.excess)


@dataclass(frozen=True, kw_only=True)
class Components:
    """Of all pairs of arms, on some benchmarks; `rate` is the mean accuracy in percent."""

    benchmarks: tuple[str, ...]
    problems: int
    rate: float
    pairs: tuple[Pair, ...]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of all pairs, which are not independent of each other."""
        return sum(pair.freedom for pair in self.pairs)

    @property
    def training(self) -> float:
        """An arm's own standard deviation over seeds, in points, pooled over the pairs."""
        return own_deviation(sum(pair.freedom * pair.excess for pair in self.pairs) / self.freedom)

    @property
    def alike(self) -> float:
        """The mean correlation of two arms' answers to one problem with one seed."""
        return float(np.mean([pair.alike for pair in self.pairs]))


def own_deviation(excess: float) -> float:
    """That of one of two arms, whose variances add up."""
    return float(np.sqrt(max(excess / 2, 0.0)))


def components(paper: Paper, runs: Sequence[RunRecord]) -> list[Components]:
    """Those of each set of benchmarks over which a claim of the paper averages greedy scores."""
    sets = {
        tuple(sorted({need.name for _, need in claim.needs if need.kind == "score"}))
        for claim in paper.claims
    }
    return [measured(runs, names) for names in sorted(sets) if names]


def measured(runs: Sequence[RunRecord], benchmarks: tuple[str, ...]) -> Components:
    """From the answers of all arms and seeds, problem by problem."""
    answers = {(run["arm"], run["seed"]): answers_of(run, benchmarks) for run in runs}
    return Components(
        benchmarks=benchmarks,
        problems=next(iter(answers.values())).size,
        rate=100 * float(np.mean([row.mean() for row in answers.values()])),
        pairs=tuple(pairs_of(answers)),
    )


def pairs_of(answers: dict[tuple[str, int], Array]) -> Iterator[Pair]:
    """All pairs of arms that share two seeds or more."""
    for one, other in combinations(sorted({arm for arm, _ in answers}), 2):
        seeds = [seed for arm, seed in answers if arm == one and (other, seed) in answers]
        if len(seeds) < 2:
            continue
        rows = [(answers[one, seed], answers[other, seed]) for seed in seeds]
        differing = [100 * (left - right) for left, right in rows]
        noise = np.mean([row.var() / row.size for row in differing])
        spread = np.var([row.mean() for row in differing], ddof=1)
        yield Pair(
            arms=(one, other),
            freedom=len(seeds) - 1,
            excess=float(spread - noise),
            alike=float(np.mean([np.corrcoef(left, right)[0, 1] for left, right in rows])),
        )


def answers_of(run: RunRecord, benchmarks: Sequence[str]) -> Array:
    """Whether each greedy answer to these benchmarks is right, 0 or 1."""
    rows = [r for r in run["scores"] if r["metric"] == "top1" and r["mirrors"] in benchmarks]
    return np.concatenate([by_problem_at(row["digest"], "pass", 1) for row in rows])
