"""Policies whose solutions several trained models scored, and what votes and scores choose.

All numbers are computed from stored scores of solutions, see `core.scoring.solution_quantities`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
import torch

from core.families.family import ENSEMBLE
from core.pages.families import PaperAtScale
from core.pages.runs import by_arm
from core.records.pair_files import PairSets, read_run_pairs
from core.records.places import page_of
from core.scoring.solution_quantities import (
    BEST,
    Ratio,
    ScoredSolutions,
    best_of,
    best_vote,
    ensemble,
    mean,
    ordered_pairs,
    scored_solutions,
    vote,
    weighted_vote,
)
from core.scoring.solutions import GREEDY, SAMPLED
from core.settings.canonical import digest_of
from eval.stats.estimates import pass_at_k
from eval.tables.arm_statistics import Measured

SIZES = (1, 2, 4, 8, 16, 32, 64)
OF_SAMPLES = ("problem", "answer", "is_answered", "is_sound", "steps")  # no scorer changes them
Measure: TypeAlias = Callable[[ScoredSolutions], Ratio]
Way: TypeAlias = Callable[[ScoredSolutions, int], Ratio]


@dataclass(frozen=True)
class Scorer:
    """A trained model that scores solutions: its arm, its start, and by seed what it scored."""

    paper: str
    path: str
    arm: str
    start: str
    samples: Mapping[int, str]  # digests of the solutions without their scores
    solutions: Mapping[int, ScoredSolutions]

    @property
    def name(self) -> str:
        """The name of the scorer on the page."""
        return self.arm if self.arm == self.paper else f"{self.paper}: {self.arm}"

    @property
    def ways(self) -> "Mapping[str, Way]":
        """The ways to choose by its scores, without weighted votes if a score is no weight."""
        weighs = all((solutions.score >= 0).all() for solutions in self.solutions.values())
        return BY_SCORES if weighs else {n: way for n, way in BY_SCORES.items() if n != WEIGHTED}


@dataclass(frozen=True)
class Chosen:
    """A row of a table: a way to choose, the scorer that it reads, and its accuracy by n in %."""

    way: str
    scorer: Scorer | None
    cells: tuple[Measured, ...]


@dataclass(frozen=True)
class Judged:
    """A row of the table of scorers: the shares of pairs that its scores put in order, in %."""

    scorer: Scorer
    within: Measured
    over_all: Measured


@dataclass(frozen=True)
class Policy:
    """Scorers of the same solutions, with the seeds at which all of them scored.

    `problems` and `drawn` are the numbers of problems and of solutions of each.
    """

    start: str
    seeds: tuple[int, ...]
    problems: int
    drawn: int
    greedy: Measured
    scorers: tuple[Judged, ...]
    sizes: tuple[int, ...]
    rows: tuple[Chosen, ...]

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers whose arms scored the solutions, each once."""
        return tuple(dict.fromkeys(row.scorer.paper for row in self.scorers))


def passes(solutions: ScoredSolutions, n: int) -> Ratio:
    """Return how often any n solutions have a right one, see `pass_at_k`."""
    total = solutions.is_answered.shape[1]
    counts = [int(right) for right in solutions.is_answered.sum(1)]
    return mean(torch.tensor([pass_at_k(total, right, n) for right in counts]).double())


WITHOUT_SCORES: Mapping[str, Way] = {"pass@n": passes, "vote": vote}
WEIGHTED = "weighted vote"
BY_SCORES: Mapping[str, Way] = {
    "best of n": best_of,
    WEIGHTED: weighted_vote,
    f"vote of the best {BEST}": best_vote,
}


def scorers_of(members: Sequence[PaperAtScale]) -> Iterator[Scorer]:
    """Yield each arm of papers whose runs stored scores of solutions, and its ensemble if any."""
    for member in members:
        path = page_of(member.paper.slug, member.scale)
        for arm, runs in by_arm(member.paper, member.runs).items():
            sets = {run["seed"]: read_run_pairs(run) for run in runs}
            scored = {seed: columns for seed, columns in sets.items() if GREEDY in columns}
            kinds = {"": scored_solutions, ENSEMBLE: ensemble}
            if not any(columns.keys() - {SAMPLED, GREEDY} for columns in scored.values()):
                del kinds[ENSEMBLE]
            for ending, read in kinds.items() if scored else ():
                yield Scorer(
                    paper=member.paper.slug,
                    path=path,
                    arm=f"{arm}{ending}",
                    start=str(runs[0]["config"]["model"]["value"]),
                    samples={seed: samples_digest(columns) for seed, columns in scored.items()},
                    solutions={seed: read(columns) for seed, columns in scored.items()},
                )


def samples_digest(sets: PairSets) -> str:
    """Return a digest of stored solutions without their scores."""
    return digest_of({name: [sets[name][c] for c in OF_SAMPLES] for name in (SAMPLED, GREEDY)})


def same_samples(scorers: Sequence[Scorer]) -> list[list[Scorer]]:
    """Return scorers in groups of which each has scored the same solutions at one seed or more."""
    groups: list[list[Scorer]] = []
    for scorer in scorers:
        fitting = (group for group in groups if shared_seeds([*group, scorer]))
        group = next(fitting, None)
        if group is None:
            groups.append([scorer])
        else:
            group.append(scorer)
    return groups


def shared_seeds(scorers: Sequence[Scorer]) -> tuple[int, ...]:
    """Return the seeds at which all scorers have scored the same solutions."""
    first, *others = scorers
    return tuple(
        seed
        for seed, digest in sorted(first.samples.items())
        if all(other.samples.get(seed) == digest for other in others)
    )


def policies_of(members: Sequence[PaperAtScale]) -> list[Policy]:
    """Return the policies whose stored solutions the runs of papers have scored."""
    return [policy_of(group) for group in same_samples([*scorers_of(members)])]


def policy_of(scorers: Sequence[Scorer]) -> Policy:
    """Return the tables of scorers of the same solutions."""
    seeds, first = shared_seeds(scorers), scorers[0]
    problems, drawn = first.solutions[seeds[0]].score.shape
    sizes = tuple(n for n in SIZES if n <= drawn)

    def measured(choose: Measure, scorer: Scorer) -> Measured:
        ratios = [choose(scorer.solutions[seed]) for seed in seeds]
        values = [100 * float(ratio.above.sum() / ratio.below.sum()) for ratio in ratios]
        return Measured(None, fmean(values), min(values), max(values), places=1)

    def chosen(way: str, choose: Way, scorer: Scorer, *, by_scores: bool) -> Chosen:
        cells = [measured(lambda solutions, n=n: choose(solutions, n), scorer) for n in sizes]
        return Chosen(way, scorer if by_scores else None, tuple(cells))

    rows = [chosen(*way, first, by_scores=False) for way in WITHOUT_SCORES.items()]
    rows += [chosen(*way, s, by_scores=True) for s in scorers for way in s.ways.items()]
    return Policy(
        start=first.start,
        seeds=seeds,
        problems=problems,
        drawn=drawn,
        greedy=measured(lambda solutions: mean(solutions.greedy), first),
        scorers=tuple(
            Judged(one, measured(ordered_pairs, one), measured(ordered_in_all, one))
            for one in scorers
        ),
        sizes=sizes,
        rows=tuple(rows),
    )


def ordered_in_all(solutions: ScoredSolutions) -> Ratio:
    """Return the share of pairs of a right and a wrong solution, of any two problems, in order.

    Equal scores count half, as in `ordered_pairs`.
    """
    right = solutions.is_answered.flatten().numpy()
    scores = solutions.score.flatten().numpy()
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[place]
    hits, misses = right.sum(), (1 - right).sum()
    in_order = (ranks * right).sum() - hits * (hits + 1) / 2
    return Ratio(torch.tensor([in_order]), torch.tensor([hits * misses]))
