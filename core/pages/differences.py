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
    """What sets a paper apart from its entry in TRL's index."""

    slug: str
    title: str
    rows: tuple[Departure, ...]
    remarks: tuple[str, ...]


def differences_files() -> dict[str, str]:
    """The page in both formats by name; nothing where there is no checkout."""
    if not claims_table().is_file():
        return {}
    found = [entry_of(paper) for paper in whole_papers() if indexed(paper)]
    return {
        f"{PAGE}.{form}": environment(form).get_template(f"{PAGE}.{form}.j2").render(papers=found)
        for form in ("md", "html")
    }


def indexed(paper: Paper) -> bool:
    """Whether there is something to say of a paper in TRL's index."""
    return bool(paper.trl_index or paper.trl_reasons)


def entry_of(paper: Paper) -> Entry:
    """All differences of a paper at its own scale."""
    return Entry(paper.slug, paper.title, departures(paper), tuple(remarks(paper)))


def departures(paper: Paper) -> tuple[Departure, ...]:
    """The fields of a paper at its own scale that TRL gives another value."""
    return tuple(map(row_of, from_trl(paper)))


def row_of(found: Difference) -> Departure:
    """A difference in words."""
    return Departure(
        field=found.field,
        ours=as_text(found.left.value),
        passage=found.left.source,
        theirs=as_text(found.right.value),
        source=found.right.source,
        because=found.because,
    )
