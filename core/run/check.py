"""The checks of `repro check`: modules, records, samples, reports and regressions."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from core.core_pool import map_on_cores
from core.pages.collection import collection_files
from core.pages.report import report_files
from core.pages.tables import shown_at
from core.paper import Paper
from core.paper.registry import Entry, entries, find_entry, lineage
from core.records.accepted import accepted_digests, drops, list_problems
from core.records.answers import seal_of
from core.records.files import file_digest, folder_files
from core.records.passed import Passed, code_digest
from core.records.places import Shelf, no_runs, own_entries, record_files, report_folder
from core.records.record import current, read_record, standard
from core.records.schema import Record, RunRecord, place_of, runs_of
from core.run.paper_problems import module_problems
from core.settings.canonical import as_text, canonical
from core.stages.watch.meter import track
from core.verdicts.consistency import derived_from, derived_problems
from core.verdicts.controls import POCKET, controls_problems, shown_among
from core.verdicts.derived_pairs import derived_with, pair_problems
from core.verdicts.history import kept_problems, unknown_files
from core.verdicts.regrade import Regrader, graded_with
from eval.errors import MissingFile, ReproError

RENDERER = ("core.paper", "core.pages", "core.verdicts", "eval")
MEANT = ("core", "eval")  # what settings and laws are made by, and pages rendered
LIBRARIES = ("jinja2", "matplotlib", "numpy", "scipy")
TENSORS = ("torch", "transformers")  # what settings and laws are made with
OURS = "papers"
PUBLISHED = Shelf.PUBLISHED
PROFILE = "profile"  # the folder of the records of profiles, and the name of their page


def check_papers(slugs: Sequence[str] = (), *, ask_again: bool = False) -> dict[str, list[str]]:
    """Return the problems of each paper, and without `slugs` also of shared pages and records.

    The bytes of all files are read in any case. What passed a check with the same bytes and code is
    checked again only if `ask_again` is set.

    Raises:
        MissingFile: no paper is named, and there is nothing to check.
    """
    chosen = [find_entry(slug) for slug in slugs] or own_entries()
    if not chosen and not record_files():
        raise MissingFile(
            f"nothing to check: no other distribution provides a paper, and there are {no_runs()}"
        )
    passed = Passed(ask_again=ask_again)
    problems: dict[str, list[str]] = {}

    def check_one(entry: Entry) -> tuple[list[str], frozenset[str]]:
        return check_paper(entry, passed, Regrader(passed)), passed.found

    checked = map_on_cores(check_one, chosen, len(os.sched_getaffinity(0)))
    for entry in track("check", chosen, lambda entry: entry.slug):
        problems[entry.slug], found = next(checked)
        passed.add(found)
        passed.save(whole=False)  # so a check that is interrupted continues from here
    passed.save(whole=not slugs)
    if slugs:
        return problems
    regrader = Regrader(passed)
    makers = collection_files(PUBLISHED)
    profile = list(profile_problems(makers.pop(PROFILE), passed))
    pages = {name: check_page(files) for name, files in makers.items()}
    rooms = {"speed": check_room("bench", regrader), POCKET: check_pocket(regrader)}
    rooms[PROFILE] = check_room(PROFILE, regrader) or profile
    rooms["speed"] = rooms["speed"] or pages["speed"]  # no page is made of damaged records
    return problems | pages | rooms | {"results": [*unknown_files(tuple(entries()))]}


def check_paper(entry: Entry, passed: Passed, regrader: Regrader) -> list[str]:
    """Return the problems of a paper: of its module, records, report and regressions.

    Samples, printed numbers and regressions are checked for all records here; lost records,
    verdicts and pages for the published ones.
    """
    try:
        paper = entry.load()
        problems = [f"module: {line}" for line in checked_module(entry, paper, passed)]
    except ReproError as error:
        return [f"module: {error}"]
    records, damaged = whole_records(paper.slug)
    published, _ = whole_records(paper.slug, PUBLISHED)
    problems += damaged + sample_problems(records, passed, regrader)
    problems += [f"reported: {line}" for line in reported_problems(paper, records)]
    problems += verdict_problems(entry, paper, published, passed)
    problems += [f"kept: {line}" for line in kept_problems(paper.slug, published, regrader)]
    problems += [f"accepted: {line}" for line in list_problems(paper.slug, published)]
    if not problems:  # a report and a comparison say nothing about damaged records
        problems += page_problems(entry, paper, published, passed)
        problems += regressions(paper.slug, records, passed)
    return problems


def checked_module(entry: Entry, paper: Paper, passed: Passed) -> list[str]:
    """Return the problems of a paper's module; one of another distribution is checked each time."""
    problems = module_problems(entry, paper)
    if not entry.module.startswith(f"{OURS}."):
        return list(problems)
    key = {
        "module": [entry.slug, entry.module, as_text(paper), entry.text()],
        "code": code_digest((*MEANT, OURS), (*LIBRARIES, *TENSORS)),
    }
    return passed.problems(key, problems)


def sample_problems(records: Sequence[Record], passed: Passed, regrader: Regrader) -> list[str]:
    """Return the scores in records of runs that do not follow from their samples."""
    problems = [
        line
        for run in runs_of(records)
        for line in list(regrader.find_damage(run)) or underived_numbers(run, passed, regrader)
    ]
    return [f"samples: {line}" for line in dict.fromkeys(problems)]


def underived_numbers(run: RunRecord, passed: Passed, regrader: Regrader) -> list[str]:
    """Return the numbers of a run that do not follow from its whole files."""
    problems = passed.problems(graded_with(run), regrader.problems(run))
    if "pairs" in run:
        problems += passed.problems(derived_with(run), pair_problems(run))
    return problems


def verdict_problems(
    entry: Entry, paper: Paper, records: Sequence[Record], passed: Passed
) -> list[str]:
    """Return the derived fields of records that do not follow from other records or the module."""
    key = {"paper": [as_text(paper), entry.text()], **derived_from(records)}
    return [f"derived: {line}" for line in passed.problems(key, derived_problems(paper, records))]


def page_problems(
    entry: Entry, paper: Paper, records: Sequence[Record], passed: Passed
) -> list[str]:
    """Return the published pages of a paper that differ from what its records render to."""
    page_records = shown_among(records, whole_records(POCKET, PUBLISHED)[0])
    key = {
        "records": [seal_of(record) for record in page_records],
        "code": code_digest(MEANT, LIBRARIES),
        "paper": [as_text(paper), entry.text(), *map(as_text, lineage(paper))],
        "files": files_of(paper.slug),
    }
    return [
        f"report: {line}" for line in passed.problems(key, report_problems(paper, page_records))
    ]


def regressions(slug: str, records: Sequence[Record], passed: Passed) -> list[str]:
    """Return the accepted results that the newest runs and verdicts no longer reach."""
    newest = standard(records)
    key = {
        "records": [seal_of(record) for record in newest],
        "code": code_digest(RENDERER, LIBRARIES),
        "accepted": accepted_digests(slug),
    }
    return [f"regression: {line}" for line in passed.problems(key, drops(slug, newest))]


def reported_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line if the record of the printed numbers is missing or differs from the module."""
    cells = canonical([number.cell() for number in paper.reported])
    published = current(r for r in records if r["kind"] == "reported")
    if records and cells and not published:
        yield f"{paper.slug}: no record of the printed numbers: run `repro publish`"
    for record in published:
        if (record["title"], record["cells"]) != (paper.title, cells):
            problem = "has other numbers than the paper's module: run `repro publish`"
            yield f"{place_of(record)} {problem}"


def files_of(slug: str) -> dict[str, str]:
    """Return the digests of the files in a paper's published reports."""
    folder = PUBLISHED.reports / slug
    return folder_files(folder) if folder.is_dir() else {}


def check_room(room: str, regrader: Regrader) -> list[str]:
    """Return the problems of the records of a folder that belongs to no paper."""
    records, damaged = whole_records(room, PUBLISHED)
    return damaged + [f"kept: {line}" for line in kept_problems(room, records, regrader)]


def check_pocket(regrader: Regrader) -> list[str]:
    """Return the problems of the pocket world's records, and of controls of models not shipped."""
    problems = [
        f"controls: {line}" for line in controls_problems(whole_records(POCKET, PUBLISHED)[0])
    ]
    return check_room(POCKET, regrader) + problems


def check_page(files: Callable[[], Mapping[str, str | bytes]]) -> list[str]:
    """Return the files of a shared page that are out of date, or the error of rendering it."""
    try:
        return [f"report: {line}" for line in stale(PUBLISHED.reports, files())]
    except ReproError as error:
        return [f"page: {error}"]


def profile_problems(
    files: Callable[[], Mapping[str, str | bytes]], passed: Passed
) -> Iterator[str]:
    """Yield the pages of profiles that differ from what their records render to."""

    def problems() -> Iterator[str]:
        yield from check_page(files)

    reports = PUBLISHED.reports
    pages = [*reports.glob(f"{PROFILE}.*"), *reports.glob(f"{PROFILE}/*"), reports / "probes.md"]
    key = {
        "records": [seal_of(record) for record in whole_records(PROFILE, PUBLISHED)[0]],
        "code": code_digest(MEANT, LIBRARIES),
        "files": {path.name: file_digest(path) for path in sorted(pages) if path.is_file()},
    }
    yield from passed.problems(key, problems())


def whole_records(slug: str, shelf: Shelf = Shelf.HERE) -> tuple[list[Record], list[str]]:
    """Return the intact records of a paper, oldest first, and one line for each damaged one."""
    records: list[Record] = []
    damaged: list[str] = []
    for path in record_files(slug, shelf):
        try:
            records.append(read_record(path))
        except ReproError as error:
            damaged.append(f"record: {error}")
    return sorted(records, key=lambda record: (record["created"], record["digest"])), damaged


def report_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """Yield the published files of a paper that are out of date or belong to no record."""
    rendered: set[Path] = set()
    for scale in shown_at(records):
        folder = report_folder(paper.slug, scale, PUBLISHED)
        files = report_files(paper, records, scale, folder)
        rendered |= {folder / name for name in files}
        yield from stale(folder, files)
    paper_folder = PUBLISHED.reports / paper.slug
    if unknown := [name for name in files_of(paper.slug) if paper_folder / name not in rendered]:
        names = ", ".join(unknown)
        yield f"{paper_folder}: no record gives {names}: delete them, or run what they show"


def stale(folder: Path, files: Mapping[str, str | bytes]) -> Iterator[str]:
    """Yield the files of a folder that differ from what was rendered now."""
    for name, content in files.items():
        path = folder / name
        written = path.read_bytes() if path.is_file() else None
        expected = content.encode() if isinstance(content, str) else content
        if written != expected:
            state = "is missing" if written is None else "differs from its records"
            yield f"{path} {state}: run `repro publish`"
