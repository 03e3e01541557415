"""Estimates the sampling error of test problems that all seeds of a claim share."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.claims import Comparison, MissingMeasure, Need, Record, Runs
from core.claims.measures import is_validation
from core.claims.win_rates import WINS
from core.records.run_samples import SampleSet, sample_set
from core.records.sample_files import held_out_digests
from core.records.schema import AtKCurves, RunRecord, ScoreRow
from core.verdicts.replications import replicated_differences
from core.verdicts.run_worlds import world_of
from eval.stats.summary import samples_by_problem, values_of
from eval.stats.voting import Ballots

SCALES = {"maj": 100.0, "pass": 100.0, "distinct": 1.0}  # of the curves at K in records
PERCENT = 100.0  # the scale of all other metrics
BLOCKS = 20  # of problems in the jackknife, left out one at a time
ROWS = ("start_scores", "scores")
SIDES = ("before", "after")
KINDS = ("score", "samples")  # of needs that are read from samples after training


def shared_variance(test: Comparison, cases: Sequence[Runs]) -> float | None:
    """Return the variance that sampling the shared problems adds to a mean difference.

    The problems are those of scores and of curves of held-out accuracy. The variance is 0 if each
    seed has drawn its own problems, as the spread over seeds contains it then, with fewer than two
    seeds, and if the comparison reads no answers to problems. Otherwise it is a jackknife estimate:
    the problems are dealt into `BLOCKS` blocks, and the difference is computed from the stored
    samples without one block at a time. It is None if that is not possible: the answers during
    training are not stored, or a curve without a block misses the threshold of the comparison.

    Args:
        test: the comparison.
        cases: the records of each seed.
    """
    needs = {need for _, need in test.needs if has_shared_problems(need, cases)}
    if len(cases) < 2 or not needs:
        return 0.0
    try:
        differences = [difference_without(test, cases, needs, block) for block in range(BLOCKS)]
    except MissingMeasure:
        return None
    return float((BLOCKS - 1) * np.var(differences))


def has_shared_problems(need: Need, cases: Sequence[Runs]) -> bool:
    """Return whether a need is read from answers to problems that several seeds share."""
    is_shared_score = need.kind in KINDS and not own_problems(cases, need.name)
    return is_shared_score or has_shared_held_out_problems(need, cases)


def has_shared_held_out_problems(need: Need, cases: Sequence[Runs]) -> bool:
    """Return whether a need is a curve of held-out problems that several seeds share.

    In a bare world each seed has held-out problems of its own.
    """
    worlds = (world_of(run) for runs in cases for run in runs.values())
    return is_validation(need) and not all(world.is_bare for world in worlds)


def difference_without(
    test: Comparison, cases: Sequence[Runs], needs: Collection[Need], block: int
) -> float:
    """Return the mean difference of a comparison without one block of test problems."""
    records = [cast(RunRecord, record) for runs in cases for record in runs.values()]
    reduced = {run["digest"]: without(run, needs, block) for run in records}
    left, right = test.values(
        [{arm: reduced[run["digest"]] for arm, run in runs.items()} for runs in cases]
    )
    return float(np.mean(replicated_differences(left, right, cases)))


def own_problems(cases: Sequence[Runs], name: str) -> bool:
    """Return whether each seed has drawn its own test problems of a benchmark."""
    rows = (row for runs in cases for run in runs.values() for row in rows_of(run, name))
    draws = {row.get("draw") for row in rows}
    return None not in draws and len(draws) >= len(cases)


def rows_of(run: Record, name: str) -> list[Record]:
    """Return all scores and curves at K of a benchmark in a record, before and after training."""
    scores = [row for key in ROWS for row in run[key] if row["mirrors"] == name]
    changes = [change for change in run["sampling"].values() if change["mirrors"] == name]
    return [*scores, *(change[side] for change in changes for side in SIDES)]


def without(run: RunRecord, needs: Collection[Need], block: int) -> Record:
    """Return a copy of a record whose needed values leave out one block of problems."""
    reduced: dict[str, Any] = dict(run)  # Any: fields of a record
    scored, sampled = ({need.name for need in needs if need.kind == kind} for kind in KINDS)
    for key in ROWS:
        reduced[key] = [
            {**row, "value": score_without(run, row, block)} if row["mirrors"] in scored else row
            for row in reduced[key]
        ]
    reduced["sampling"] = {
        suite: {**change, **{side: curves_without(run, change[side], block) for side in SIDES}}
        if change["mirrors"] in sampled
        else change
        for suite, change in reduced["sampling"].items()
    }
    watched = {need.name for need in needs if is_validation(need)} & run["curves"].keys()
    curves = {name: curve_without(run, name, block) for name in watched}
    reduced["curves"] = {**run["curves"], **curves}
    if WINS in reduced:
        reduced[WINS] = wins_without(reduced[WINS], scored, block)
    return reduced


def wins_without(
    wins: Mapping[str, Mapping[str, Sequence[float]]], names: Collection[str], block: int
) -> dict[str, dict[str, Sequence[float]]]:
    """Return chances to win without a block of the problems of these benchmarks."""
    left = slice(block, None, BLOCKS)
    return {
        side: {
            name: np.delete(values, left).tolist() if name in names else values
            for name, values in by_name.items()
        }
        for side, by_name in wins.items()
    }


def curve_without(run: RunRecord, name: str, block: int) -> list[tuple[float, float]]:
    """Return the curve of held-out accuracy of a run without a block of problems.

    Raises:
        MissingMeasure: the answers at a step are not stored.
    """
    digests, points = held_out_digests(run), run["curves"][name]
    if absent := [step for step, _ in points if str(int(step)) not in digests]:
        raise MissingMeasure(f"record {run['digest']} has no answers at the steps {absent}")
    return [
        (step, left_out(sample_set(run, digests[str(int(step))]), "pass", 1)[block])
        for step, _ in points
    ]


def score_without(run: RunRecord, row: ScoreRow, block: int) -> float:
    """Return a score without a block of problems; that of single answers is their Pass@1."""
    name, _, k = row["metric"].partition("@")
    name = "pass" if name == "top1" else name
    return left_out(sample_set(run, row["digest"]), name, int(k or 1))[block]


def curves_without(run: RunRecord, row: AtKCurves, block: int) -> dict[str, object]:
    """Return the curves at K of one policy without a block of problems."""
    samples = sample_set(run, row["digest"])
    names = [name for name in SCALES if name in row]
    curves = {name: [left_out(samples, name, k)[block] for k in row["k"]] for name in names}
    return {**row, **curves}


@cache
def left_out(samples: SampleSet, name: str, k: int) -> tuple[float, ...]:
    """Return a metric at K without each of the blocks, a tuple of `BLOCKS` numbers.

    Metrics are in percent, except for the number of different right answers. Block
    i consists of problems i, i + BLOCKS, ... in the order of the problems' names. For single
    answers Pass@1 is the share of right ones.
    """
    values = by_problem_at(samples, name, k)
    blocks = (slice(block, None, BLOCKS) for block in range(BLOCKS))
    return tuple(
        SCALES.get(name, PERCENT) * float(np.delete(values, block).mean()) for block in blocks
    )


def by_problem_at(samples: SampleSet, name: str, k: int) -> NDArray[np.float64]:
    """Return a metric at K of each problem, see `values_of`, in the order of their names."""
    return np.asarray(values_of(ballots_of(samples), name, k, 0), dtype=float)


@lru_cache(maxsize=1)  # each K of a set follows the one before
def ballots_of(samples: SampleSet) -> Ballots:
    """Return the samples of a set by problem, in the order of the problems' names."""
    ordered = sorted(samples.read(), key=lambda sample: sample.id)
    return Ballots(samples_by_problem(ordered, ordered[0].benchmark))
