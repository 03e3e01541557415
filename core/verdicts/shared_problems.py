"""The error that comes with test problems which all seeds of a claim share."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.claims import Comparison, Need, Record, Runs
from core.records.places import samples_file
from core.records.schema import RunRecord
from eval.samples.store import read_samples
from eval.stats.summary import by_problem, values_of
from eval.stats.voting import Ballots

BLOCKS = 20  # that the problems are dealt into; one is left out at a time
ROWS = ("start_scores", "scores")
SIDES = ("before", "after")
KINDS = ("score", "samples")  # of what a claim needs, that are read from samples


def shared_variance(test: Comparison, cases: Sequence[Runs]) -> float:
    """The variance of a mean difference over the drawing of the test problems that seeds share.

    It is 0 where each seed has drawn its own, so that their spread holds it. Otherwise it is the
    jackknife's: the problems are dealt into blocks, and the difference is computed from the stored
    samples without one block at a time.
    """
    needs = {need for _, need in test.needs if need.kind in KINDS}
    names = {need.name for need in needs}
    records = [cast(RunRecord, record) for runs in cases for record in runs.values()]
    if len(cases) < 2 or not names or own_problems(cases, names):
        return 0.0
    values: list[float] = []
    for block in range(BLOCKS):
        less = {run["digest"]: without(run, needs, block) for run in records}
        left, right = test.values(
            [{arm: less[run["digest"]] for arm, run in runs.items()} for runs in cases]
        )
        values.append(float(np.mean(left) - np.mean(right)))
    return float((BLOCKS - 1) * np.var(values))


def own_problems(cases: Sequence[Runs], names: Iterable[str]) -> bool:
    """Whether every seed names a draw of its own of each benchmark that is read."""
    for name in names:
        draws = [
            {row.get("draw") for run in runs.values() for row in rows_of(run, name)}
            for runs in cases
        ]
        named = {draw for each in draws for draw in each}
        if None in named or len(named) < len(cases):
            return False
    return True


def rows_of(run: Record, name: str) -> list[Mapping[str, Any]]:
    """The scores and the curves at K of a benchmark, before and after."""
    scores = [row for key in ROWS for row in run[key] if row["mirrors"] == name]
    changes = [change for change in run["sampling"].values() if change["mirrors"] == name]
    return [*scores, *(change[side] for change in changes for side in SIDES)]


def without(run: RunRecord, needs: Iterable[Need], block: int) -> Record:
    """A record whose values, of what is read, leave out one block of problems."""
    less: dict[str, Any] = dict(run)
    scored, sampled = ({need.name for need in needs if need.kind == kind} for kind in KINDS)
    for key in ROWS:
        less[key] = [
            {**row, "value": score_without(row, block)} if row["mirrors"] in scored else row
            for row in less[key]
        ]
    less["sampling"] = {
        suite: {**change, **{when: curves_without(change[when], block) for when in SIDES}}
        if change["mirrors"] in sampled
        else change
        for suite, change in less["sampling"].items()
    }
    return less


def score_without(row: Mapping[str, Any], block: int) -> float:
    """A score without a block; that of single answers is their Pass@1."""
    name, _, k = row["metric"].partition("@")
    name = "pass" if name == "top1" else name
    return left_out(row["digest"], name, int(k or 1))[block]


def curves_without(row: Mapping[str, Any], block: int) -> dict[str, Any]:
    """Maj@K and Pass@K of one policy without a block."""
    found = {
        name: [left_out(row["digest"], name, k)[block] for k in row["k"]]
        for name in ("maj", "pass")
    }
    return {**row, **found}


@cache
def left_out(digest: str, name: str, k: int) -> tuple[float, ...]:
    """Maj@K or Pass@K in percent without each block: every so many problems by their names' order.

    Of a single answer, Pass@1 says whether it is right.
    """
    values = by_problem_at(digest, name, k)
    blocks = (slice(block, None, BLOCKS) for block in range(BLOCKS))
    return tuple(100 * float(np.delete(values, block).mean()) for block in blocks)


def by_problem_at(digest: str, name: str, k: int) -> NDArray[np.float64]:
    """Maj@K or Pass@K of each problem, in the order of the problems' names."""
    return np.asarray(values_of(ballots_of(digest), name, k, 0), dtype=float)


@lru_cache(maxsize=1)  # each K of a file follows the one before
def ballots_of(digest: str) -> Ballots:
    """The samples of a file by problem, in the order of the problems' names."""
    samples = sorted(read_samples(samples_file(digest), digest), key=lambda sample: sample.id)
    return Ballots(by_problem(samples, samples[0].benchmark))
