"""The first page of reports/: every paper, its verdicts at each scale, and where its page is."""

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
    """A paper at a scale: how many of its claims have which verdict, and what is left to run."""

    paper: Paper
    scale: str
    path: str
    counts: Mapping[str, int]
    runs: int
    left: str


def index_files(shelf: Shelf) -> dict[str, str]:
    """Return the page in both formats by name; nothing where no paper has a page."""
    known = whole_papers()
    rows = [row for paper in known for row in rows_of(paper, shelf)]
    named = {name: [row for row in rows if family_of(row.paper) == name] for name in FAMILIES}
    families = {name: some for name, some in named.items() if some}
    return {
        f"{PAGE}.{form}": environment(form)
        .get_template(f"{PAGE}.{form}.j2")
        .render(families=families, folder=in_checkout() and FOLDER, trl=DIFFERENCES)
        for form in ("md", "html")
        if rows
    }


def family_of(paper: Paper) -> str:
    """The family that a paper is listed with."""
    return find_family(paper.family).listed_with or paper.family


def in_checkout() -> bool:
    """Whether there are pages of families and of differences to TRL."""
    return claims_table().is_file()


def rows_of(paper: Paper, shelf: Shelf) -> list[Row]:
    """A row for every scale at which a paper has a page, in a checkout always for the first."""
    records = latest(read_records(paper.slug, shelf))
    return [
        Row(
            paper=paper,
            scale=scale,
            path=page_of(paper.slug, scale),
            counts=counted(verdicts_of(paper, records, scale)),
            runs=len(runs_of(records, scale)),
            left=to_run(paper, records, scale),
        )
        for scale in shown_at(records)
    ]


def counted(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many there are of each verdict that there is."""
    counts = Counter(map(verdict_word, verdicts))
    return {word: counts[word] for word in WORDS if counts[word]}
