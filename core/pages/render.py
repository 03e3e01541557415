"""Renders the pages of a shelf and writes them to their places."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.pages.card import write_cards
from core.pages.collection import collection_files
from core.pages.report import report_files
from core.pages.tables import record_reported, scale_tables, shown_at
from core.pages.verdicts import verdict_line
from core.paper import Paper
from core.paper.registry import find_entry
from core.records.fair import fair
from core.records.files import folder_files, write_atomic
from core.records.places import Shelf, own_entries, report_folder
from core.stages.watch.meter import track
from core.verdicts.controls import shown_records
from core.verdicts.outcome import Outcome
from core.verdicts.verdict_records import judge_again
from eval.errors import ReproError
from eval.tables import render


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The output of a finished run: its table in Markdown, verdicts, and the path of its page."""

    table: str
    verdicts: list[str]
    path: Path


def render_outcome(paper: Paper, outcome: Outcome) -> Shown:
    """Render the report in runs/ and a card for each model; return the table and the verdicts.

    Runs with overrides have a page of their own, others are shown on the page of their paper.
    """
    record_reported(paper)
    scale, claims = outcome.claims["scale"], outcome.claims
    if claims["overrides"]:
        folder = Shelf.HERE.reports / f"{paper.slug}-{scale}-{claims['digest']}"
        records = fair([*outcome.runs, *outcome.tunings, claims])
        write_files(folder, report_files(paper, records, scale, folder, alone=True))
    else:
        folder = report_folder(paper.slug, scale, Shelf.HERE)
        judge_again(paper)
        write_reports(paper, Shelf.HERE)
    write_cards(paper, outcome.runs, outcome.verdicts)
    tables = scale_tables(paper, fair([*outcome.runs, *outcome.tunings]), scale)
    return Shown(
        table="".join(render(table, "md") for table in tables[:1]),
        verdicts=[*map(verdict_line, outcome.verdicts)],
        path=folder / "report.md",
    )


def render_all(
    slugs: Sequence[str] = (), shelf: Shelf = Shelf.HERE, *, collection: bool = False
) -> tuple[list[Path], list[ReproError]]:
    """Render the reports of papers on a shelf.

    Args:
        slugs: The papers; without any, all papers of this checkout or of plug-ins.
        shelf: The records that are read, and the folder that is written.
        collection: Render the pages of the whole collection, too, as is done without `slugs`.

    Returns:
        The paths of the pages in Markdown, and the errors of the pages that were not made.

    Raises:
        UnknownName: a slug is unknown; nothing is rendered.
    """
    chosen = [find_entry(slug) for slug in slugs] or own_entries()
    pages, errors = list[Path](), list[ReproError]()
    makers: dict[str, Callable[[], list[Path]]] = {
        entry.slug: lambda entry=entry: render_paper(entry.load(), shelf) for entry in chosen
    }
    if not slugs or collection:
        files = collection_files(shelf)
        makers |= {name: partial(write_made, shelf, make) for name, make in files.items()}
    for _, make in track("report", [*makers.items()], lambda entry: entry[0]):
        try:
            pages += make()
        except ReproError as error:
            errors.append(error)
    return pages, errors


def render_paper(paper: Paper, shelf: Shelf = Shelf.HERE) -> list[Path]:
    """Write the pages of a paper, with verdicts that follow from the records."""
    record_reported(paper)
    judge_again(paper)
    return write_reports(paper, shelf)


def write_reports(paper: Paper, shelf: Shelf) -> list[Path]:
    """Write a page for every scale that has one; return those in Markdown."""
    records, pages = shown_records(paper.slug, shelf), list[Path]()
    for scale in shown_at(records):
        folder = report_folder(paper.slug, scale, shelf)
        files = report_files(paper, records, scale, folder)
        pages += write_files(folder, files)
        remove_unshown(folder, files)
    return [page for page in pages if page.stem == "report"]


def remove_unshown(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Remove tables and figures of an earlier page that the records no longer give."""
    kinds = {Path(name).suffix for name in files}
    for name in folder_files(folder):
        if name not in files and Path(name).suffix in kinds:
            (folder / name).unlink()


def write_made(shelf: Shelf, make: Callable[[], Mapping[str, str | bytes]]) -> list[Path]:
    """Make files and write them among the reports of a shelf; return those in Markdown."""
    return write_files(shelf.reports, make())


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write files by name; return those in Markdown."""
    written = [write_atomic(folder / name, content) for name, content in files.items()]
    return [path for path in written if path.suffix == ".md"]
