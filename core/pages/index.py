"""The first page of reports/: all papers, with their verdicts and pages at each scale."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # Any: a verdict

from core.families.table import FAMILIES, find_family
from core.pages.differences import PAGE as DIFFERENCES
from core.pages.families import FOLDER, to_run, verdicts_of
from core.pages.tables import shown_at
from core.pages.verdicts import WORDS, verdict_word
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.places import Shelf, claims_table, page_of
from core.records.record import latest, read_records
from core.records.schema import runs_of
from eval.tables.render import environment

PAGE = "index"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A paper at a scale: the number of claims with each verdict, and what is left to run."""

    paper: Paper
    scale: str
    path: str
    counts: Mapping[str, int]
    runs: int
    left: str


def index_files(shelf: Shelf) -> dict[str, str]:
    """Return the page in both formats by file name; empty if no paper has a page."""
    all_papers = whole_papers()
    rows = [row for paper in all_papers for row in rows_of(paper, shelf)]
    by_family = {name: [row for row in rows if family_of(row.paper) == name] for name in FAMILIES}
    families = {name: family_rows for name, family_rows in by_family.items() if family_rows}
    return {
        f"{PAGE}.{form}": environment(form)
        .get_template(f"{PAGE}.{form}.j2")
        .render(families=families, folder=in_checkout() and FOLDER, trl=DIFFERENCES)
        for form in ("md", "html")
        if rows
    }


def family_of(paper: Paper) -> str:
    """Return the family that a paper is listed with."""
    return find_family(paper.family).listed_with or paper.family


def in_checkout() -> bool:
    """Return whether there are pages of families and of differences to TRL."""
    return claims_table().is_file()


def rows_of(paper: Paper, shelf: Shelf) -> list[Row]:
    """Return a row for each scale at which a paper has a page."""
    records = latest(read_records(paper.slug, shelf))
    return [
        Row(
            paper=paper,
            scale=scale,
            path=page_of(paper.slug, scale),
            counts=verdict_counts(verdicts_of(paper, records, scale)),
            runs=len(runs_of(records, scale)),
            left=to_run(paper, records, scale),
        )
        for scale in shown_at(records)
    ]


def verdict_counts(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of claims with each verdict word that occurs."""
    counts = Counter(map(verdict_word, verdicts))
    return {word: counts[word] for word in WORDS if counts[word]}
