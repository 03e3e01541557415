"""Replications of a comparison: seeds, or starting models where several seeds share one."""

from collections.abc import Sequence
from statistics import fmean

from core.claims import Runs
from core.models.builds import REPLICATIONS


def replicated_differences(
    left: Sequence[float], right: Sequence[float], cases: Sequence[Runs]
) -> list[float]:
    """Return left - right of each replication.

    A replication is a seed. If the seeds have fewer starting models than there are seeds, it is a
    starting model, with the mean over its seeds: what a comparison owes to a starting model is the
    same for all its seeds. If all seeds have one starting model, the comparison is about this model
    alone, and a replication is a seed.

    Args:
        left: values of the left side, one for each seed.
        right: values of the right side.
        cases: the records of each seed; empty for a simulation.
    """
    differences = [a - b for a, b in zip(left, right, strict=True)]
    starts = [start_digests(runs) for runs in cases]
    if len({*starts}) < 2:
        return differences
    by_start: dict[tuple[str, ...], list[float]] = {}
    for start, difference in zip(starts, differences, strict=True):
        by_start.setdefault(start, []).append(difference)
    return [fmean(values) for values in by_start.values()]


def start_digests(runs: Runs) -> tuple[str, ...]:
    """Return the digests of the models that the arms of a seed start from, in order of the arms."""
    return tuple(str(runs[arm].get("model", {}).get("digest")) for arm in sorted(runs))


def number_of_starts(cases: Sequence[Runs]) -> int | None:
    """Return how many starting models the seeds take in turn, further seeds included.

    It is None if each seed has its own, or if all seeds have the same.
    """
    names = {str(run.get("start_model")) for runs in cases for run in runs.values()}
    builds = max((REPLICATIONS.get(name, 0) for name in names), default=0)
    return builds or None
