"""Writes reports/: which pages there are, and where they lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.families.profiles import SCALES
from core.paper import Paper
from core.paper.registry import find_entry
from core.run.files import write_atomic
from core.run.order import Outcome
from core.run.pages.card import write_cards
from core.run.pages.claims import claims_files
from core.run.pages.differences import differences_files
from core.run.pages.families import write_families
from core.run.pages.index import index_files
from core.run.pages.report import report_files
from core.run.pages.runs import runs_table
from core.run.pages.speed import speed_files
from core.run.pages.tables import publish_reported, shown_at
from core.run.pages.verdicts import verdict_line
from core.run.places import claims_table, own_entries, report_folder, reports, root
from core.run.records.controls import shown_records
from core.run.records.fair import fair
from core.run.records.judged import judge_again
from core.run.records.record import read_records
from core.run.records.schema import Record
from core.run.watch.meter import each
from eval.errors import ReproError
from eval.tables import render


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a run prints at its end, the table as Markdown, and the page with the rest."""

    table: str
    verdicts: list[str]
    path: Path


def render_outcome(paper: Paper, outcome: Outcome) -> Shown:
    """Render the report, a card for each model, and return the table and the verdicts.

    Runs with overrides of their own get a page beside the runs, not in reports/.
    """
    publish_reported(paper)
    scale = outcome.claims["scale"]
    if outcome.claims["overrides"]:
        folder = root() / "runs" / "reports" / f"{paper.slug}-{scale}-{outcome.claims['digest']}"
        records = fair([*outcome.runs, *outcome.tunings, outcome.claims])
    else:
        folder = report_folder(paper.slug, scale)
        records = shown_records(paper.slug)
    path = write_report(paper, records, scale, folder)
    write_cards(paper, outcome.runs, outcome.verdicts)
    shown = render(runs_table(paper, fair([*outcome.runs, *outcome.tunings]), scale), "md")
    return Shown(table=shown, verdicts=[*map(verdict_line, outcome.verdicts)], path=path)


def render_all(slugs: tuple[str, ...] = ()) -> tuple[list[Path], list[ReproError]]:
    """Render the reports of papers; without `slugs` of all here, and the pages of no paper.

    The pages, and why others could not be made.
    """
    chosen = [find_entry(slug) for slug in slugs] or own_entries()
    pages, errors = list[Path](), list[ReproError]()
    makers = {one.slug: lambda one=one: render_paper(one.load()) for one in chosen}
    others = {
        "families": render_families,
        "speed": render_speed,
        "claims": render_claims,
        "differences to TRL": render_differences,
        "index": render_index,
    }
    named = [*(makers if slugs else makers | others).items()]
    for _, make in each("report", named, lambda one: one[0]):
        try:
            pages += make()
        except ReproError as error:
            errors.append(error)
    return pages, errors


def render_paper(paper: Paper) -> list[Path]:
    """A page for every scale that has one."""
    publish_reported(paper)
    judge_again(paper)
    records = shown_records(paper.slug)
    return [
        write_report(paper, records, scale, report_folder(paper.slug, scale))
        for scale in shown_at(records)
    ]


def render_families() -> list[Path]:
    """The page of every family, in a checkout."""
    return write_families(SCALES[0]) if claims_table().is_file() else []


def render_speed() -> list[Path]:
    """The page of speed, if it was measured."""
    speed = speed_files(read_records("bench"))
    written = [write_atomic(reports() / name, content) for name, content in speed.items()]
    return [path for path in written if path.suffix == ".md"]


def render_claims() -> list[Path]:
    """The page of claims, if there is a table of them."""
    return [write_atomic(reports() / name, page) for name, page in claims_files().items()]


def render_differences() -> list[Path]:
    """The page of differences to TRL, in a checkout."""
    return [write_atomic(reports() / name, page) for name, page in differences_files().items()]


def render_index() -> list[Path]:
    """The first page, from which all papers are found."""
    return [write_atomic(reports() / name, page) for name, page in index_files().items()]


def write_report(paper: Paper, records: Sequence[Record], scale: str, folder: Path) -> Path:
    """Write the page, tables and figures of one paper; returns the Markdown page."""
    files = report_files(paper, records, scale, folder)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return folder / "report.md"
