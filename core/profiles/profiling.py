"""Profiles: an algorithm trained in every world, and its scores against another algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from core.profiles.naming import find_algorithm
from core.profiles.probes import PROBES, Probe
from core.profiles.record import ROOM, has_answer, profile_record
from core.profiles.runs import Request, run_profile
from core.profiles.scores import Aggregates, Row, aggregates, profiles, score_rows
from core.records.places import check_writable, own_results
from core.records.record import Record, write_record
from eval.errors import BadValue, UnknownName

FEWEST_SEEDS, MOST_SEEDS = 3, 16


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A profile and that of the algorithm it is compared with, and what follows from them."""

    record: Record
    base: Record
    rows: Sequence[Row]
    aggregates: Aggregates | None


def find_probes(names: Sequence[str] | None) -> tuple[Probe, ...]:
    """Return the probes of these names, all for None.

    Raises:
        UnknownName: there is no probe of a name; the nearest names are given.
    """
    distinct = dict.fromkeys(PROBES if names is None else names)
    for name in distinct:
        if name not in PROBES:
            raise UnknownName("probe", name, PROBES)
    return tuple(PROBES[name] for name in distinct)


def make_profile(
    arguments: Sequence[str], probes: Sequence[Probe], *, against: str, seeds: int, jobs: int
) -> Profile:
    """Profile an algorithm, and the one that it is compared with unless a record holds it.

    Finished runs are not repeated.

    Args:
        arguments: The words of the command line that name the algorithm.
        probes: The probes.
        against: The name of the other algorithm.
        seeds: The number of seeds.
        jobs: The largest number of processes at a time.

    Raises:
        BadValue: there are too few seeds for an interval, or more than a world has, or an algorithm
            enters none of the probes.
        ReproError: an algorithm cannot be found or trained, see `find_algorithm` and `run_profile`.
    """
    if not FEWEST_SEEDS <= seeds <= MOST_SEEDS:
        raise BadValue(f"--seeds {seeds}: expected {FEWEST_SEEDS} to {MOST_SEEDS}")
    check_writable(own_results() / ROOM)
    requests = [
        Request(
            algorithm=find_algorithm(names),
            arguments=tuple(names),
            probes=tuple(probes),
            seeds=seeds,
            jobs=jobs,
        )
        for names in (arguments, (against,))
    ]
    for request in requests:
        if not request.trainings:
            algorithm = request.algorithm
            raise BadValue(
                f"{algorithm.name}: none of these probes is trained by the family "
                f"{algorithm.family}: {', '.join(probe.name for probe in probes)}"
            )
    return compare(run_request(requests[0]), recorded(requests[1]) or run_request(requests[1]))


def recorded(request: Request) -> Record | None:
    """Return the newest record of the profile that is asked for; None if there is none."""
    records = profiles().get(request.algorithm.name, [])
    return next((r for r in reversed(records) if has_answer(r, request)), None)


def run_request(request: Request) -> Record:
    """Run what is left of a profile, write its record, and return it."""
    start = monotonic()
    runs = run_profile(request)
    return write_record(profile_record(request, runs, monotonic() - start))


def compare(record: Record, base: Record) -> Profile:
    """Return the scores of a profile against another one."""
    rows = score_rows(record, base, profiles())
    return Profile(record=record, base=base, rows=rows, aggregates=aggregates(rows))
