"""Variance components of a paper's runs, measured for the simulation of error rates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.paper import Paper
from core.records.run_samples import sample_set
from core.records.schema import RunRecord
from core.verdicts.shared_problems import by_problem_at

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two arms over the seeds that they share.

    `freedom` is the number of those seeds less one. `excess` is the variance over seeds of the mean
    difference, in squared points, less the variance that sampling the test problems explains;
    `alike` is the mean correlation of the two arms' answers to one problem.
    """

    arms: tuple[str, str]
    freedom: int
    excess: float
    alike: float

    @property
    def training(self) -> float:
        """Standard deviation over seeds of either arm, in points: training and start policy."""
        return own_deviation(self.excess)


@dataclass(frozen=True, kw_only=True)
class Components:
    """The components of all pairs of arms on some benchmarks; `rate` is the mean accuracy in %."""

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
        """Standard deviation over seeds of an arm, in points, pooled over the pairs."""
        return own_deviation(sum(pair.freedom * pair.excess for pair in self.pairs) / self.freedom)

    @property
    def alike(self) -> float:
        """Mean correlation of two arms' answers to one problem with one seed."""
        return float(np.mean([pair.alike for pair in self.pairs]))


def own_deviation(excess: float) -> float:
    """Return the standard deviation of one arm, given the variance of a difference of two."""
    return float(np.sqrt(max(excess / 2, 0.0)))


def components(paper: Paper, runs: Sequence[RunRecord]) -> list[Components]:
    """Return the components for each set of benchmarks whose greedy scores a claim averages."""
    sets = {
        tuple(sorted({need.name for _, need in claim.needs if need.kind == "score"}))
        for claim in paper.claims
    }
    return [measure_components(runs, names) for names in sorted(sets) if names]


def measure_components(runs: Sequence[RunRecord], benchmarks: tuple[str, ...]) -> Components:
    """Return the components of the greedy answers of all arms and seeds to these benchmarks."""
    answers = {(run["arm"], run["seed"]): answers_of(run, benchmarks) for run in runs}
    arms = sorted({arm for arm, _ in answers})
    pairs = (pair_of(answers, first, second) for first, second in combinations(arms, 2))
    return Components(
        benchmarks=benchmarks,
        problems=next(iter(answers.values())).size,
        rate=100 * float(np.mean([row.mean() for row in answers.values()])),
        pairs=tuple(pair for pair in pairs if pair is not None),
    )


def pair_of(answers: Mapping[tuple[str, int], Array], first: str, second: str) -> Pair | None:
    """Compare two arms over the seeds that they share.

    Args:
        answers: 0 or 1 for each problem, by arm and seed.
        first: an arm.
        second: another arm.

    Returns:
        None if the arms share fewer than two seeds.
    """
    shared = list(paired_answers(answers, first, second))
    if len(shared) < 2:
        return None
    differences = [100 * (a - b) for a, b in shared]
    noise = np.mean([row.var() / row.size for row in differences])
    variance = np.var([row.mean() for row in differences], ddof=1)
    return Pair(
        arms=(first, second),
        freedom=len(shared) - 1,
        excess=float(variance - noise),
        alike=float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in shared])),
    )


def paired_answers(
    answers: Mapping[tuple[str, int], Array], first: str, second: str
) -> Iterator[tuple[Array, Array]]:
    """Yield the answers of two arms for each seed that both have."""
    for (arm, seed), row in answers.items():
        if arm == first and (second, seed) in answers:
            yield row, answers[second, seed]


def answers_of(run: RunRecord, benchmarks: Sequence[str]) -> Array:
    """Return the correctness (0 or 1) of greedy answers to these benchmarks as one vector.

    The order is that of the scores of the run; a benchmark without a top1 score is left out.

    Raises:
        ValueError: no benchmark has one.
    """
    rows = [r for r in run["scores"] if r["metric"] == "top1" and r["mirrors"] in benchmarks]
    return np.concatenate(
        [by_problem_at(sample_set(run, row["digest"]), "pass", 1) for row in rows]
    )
