"""Publication of records: checks them, moves them to results/, and renders reports/."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from core.pages.render import render_all
from core.pages.tables import record_reported
from core.paper.registry import entries, find_entry
from core.records.accepted import absent_records
from core.records.accepted import accept as accept_records
from core.records.files import copy_atomic
from core.records.passed import Passed
from core.records.places import (
    Shelf,
    check_writable,
    own_results,
    record_files,
    results,
    stored_file,
)
from core.records.record import Record, read_record, read_records, standard
from core.records.run_samples import sample_files_of
from core.records.runs_lock import working_in_runs
from core.records.schema import runs_of
from core.run.check import regressions, sample_problems, verdict_problems, whole_records
from core.run.paper_problems import module_problems
from core.verdicts.history import ROOMS
from core.verdicts.regrade import Regrader
from core.verdicts.simulations import record_simulations
from core.verdicts.verdict_records import at_other_settings, judge_again
from eval.errors import ReproError, UnknownName


class FailedCheck(ReproError):
    """The failure of records in the checks of `repro check`."""

    exit_code = 1


def publish(names: Sequence[str] = (), *, accept: bool = False) -> tuple[list[Path], list[Path]]:
    """Move the records of standard settings from runs/ to results/, and render reports/.

    Args:
        names: Papers, or rooms of records that belong to no paper; default: all with records here.
        accept: Take the newest runs and verdicts as those that later ones are compared with.

    Returns:
        The records that were moved, and the pages that were written.

    Raises:
        UnknownName: there is no such paper or room.
        FailedCheck: a record of these papers fails a check; nothing was moved.
        BadValue: a folder cannot be written.
    """
    papers, rooms = choose(names)
    check_writable(results(), Shelf.PUBLISHED.reports)
    with working_in_runs():
        records = [publishable(slug, accept=accept) for slug in papers]
        records += map(read_records, rooms)
        moved = [path for records_of_one in records for path in move(records_of_one)]
    if accept:
        for slug in papers:
            accept_records(slug, standard(read_records(slug, Shelf.PUBLISHED)))
    pages, errors = render_all(papers if names else (), Shelf.PUBLISHED, collection=True)
    if errors:
        raise errors[0]
    return moved, pages


def choose(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the papers and the rooms of records that are named; all with records here by default.

    Raises:
        UnknownName: there is no such paper or room.
    """
    for name in names:
        if name not in {*entries(), *ROOMS}:
            raise UnknownName("paper or room of records", name, {*entries(), *ROOMS})
    if not names:
        return [slug for slug in entries() if record_files(slug)], [*ROOMS]
    return [slug for slug in entries() if slug in names], [room for room in ROOMS if room in names]


def publishable(slug: str, *, accept: bool) -> list[Record]:
    """Return the records of a paper that are to be published, once they have passed their checks.

    These are all of standard settings; verdicts at other settings over the seeds of a first look,
    which the paper's page shows; and the runs and trials that these name.

    Raises:
        FailedCheck: a check failed.
    """
    entry = find_entry(slug)
    paper = entry.load()
    record_reported(paper)
    record_simulations(paper)
    judge_again(paper)
    records, problems = whole_records(slug)
    elsewhere = at_other_settings(records)
    referenced = {
        name for record in elsewhere for name in (*record["runs"], *record.get("tunings", ()))
    }
    digests = {record["digest"] for record in elsewhere} | referenced
    chosen = [
        record for record in records if not record.get("overrides") or record["digest"] in digests
    ]
    passed = Passed()
    problems += [f"module: {line}" for line in module_problems(entry, paper)]
    problems += sample_problems(chosen, passed, Regrader(passed))
    problems += verdict_problems(entry, paper, chosen, passed)
    if not accept:
        absent = [f"accepted: {line}" for line in absent_records(slug, records)]
        problems += absent or regressions(slug, chosen, passed)
    passed.save(whole=False)
    if problems:
        raise FailedCheck(f"{slug} is not published, nor is any other: {'; '.join(problems)}")
    return chosen


def move(records: Iterable[Record]) -> list[Path]:
    """Move records from runs/ to results/ with their samples and those that they supersede."""
    moved: list[Path] = []
    for record in records:
        paths = {path.stem: path for path in record_files(record["paper"])}
        digest: str | None = record["digest"]
        while digest in paths and paths[digest].is_relative_to(own_results()):
            moved_record = read_record(paths[digest])
            moved.append(move_record(paths.pop(digest), moved_record))
            digest = moved_record["supersedes"]
    return moved


def move_record(path: Path, record: Record) -> Path:
    """Move a record from runs/ to results/ with its samples, and return its new path."""
    samples = [file for run in runs_of([record]) for file, _ in sample_files_of(run)]
    samples += [stored_file(run["pairs"]) for run in runs_of([record]) if "pairs" in run]
    for file in (*samples, path):
        if file.is_file() and file.is_relative_to(own_results()):
            copy_atomic(file, results() / file.relative_to(own_results()))
            file.unlink()
    return results() / path.relative_to(own_results())
