"""The page of all fields in which papers differ from what TRL's paper index sets, and why."""

from dataclasses import dataclass

from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.places import claims_table
from core.settings.canonical import as_text
from core.settings.differences import Difference, from_trl, remarks
from eval.tables.render import environment
from eval.tables.report import Departure

PAGE = "differences-to-trl"


@dataclass(frozen=True)
class Entry:
    """The differences of a paper from its entry in TRL's paper index."""

    slug: str
    title: str
    rows: tuple[Departure, ...]
    remarks: tuple[str, ...]


def differences_files() -> dict[str, str]:
    """Return the page in both formats by file name; empty outside a checkout."""
    if not claims_table().is_file():
        return {}
    papers = [entry_of(paper) for paper in whole_papers() if is_indexed(paper)]
    return {
        f"{PAGE}.{form}": environment(form).get_template(f"{PAGE}.{form}.j2").render(papers=papers)
        for form in ("md", "html")
    }


def is_indexed(paper: Paper) -> bool:
    """Return whether a paper is in TRL's paper index, or has a remark on it."""
    return bool(paper.trl_index or paper.trl_reasons)


def entry_of(paper: Paper) -> Entry:
    """Return all differences of a paper at its own scale."""
    return Entry(paper.slug, paper.title, departures(paper), tuple(remarks(paper)))


def departures(paper: Paper) -> tuple[Departure, ...]:
    """Return the fields of a paper, at its own scale, to which TRL gives another value."""
    return tuple(map(row_of, from_trl(paper)))


def row_of(difference: Difference) -> Departure:
    """Return a difference as the page shows it."""
    return Departure(
        field=difference.field,
        ours=as_text(difference.left.value),
        passage=difference.left.source,
        theirs=as_text(difference.right.value),
        source=difference.right.source,
        because=difference.because,
    )
