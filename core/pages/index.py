"""The first page of reports/: all papers, with their verdicts and pages at each scale."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.families.table import FAMILIES, find_family
from core.pages.claim_rows import kind_of
from core.pages.differences import PAGE as DIFFERENCES
from core.pages.families import FOLDER, to_run, verdicts_of
from core.pages.selection import PAGE as SELECTION
from core.pages.selection import has_scorers
from core.pages.tables import shown_at
from core.pages.verdicts import verdict_word
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.places import Shelf, claims_table, page_of
from core.records.record import latest, read_records
from core.records.schema import runs_of
from core.records.verdict_row import VerdictRow
from eval.tables.render import environment, load_script
from eval.tables.verdict_words import VERDICTS

PAGE = "index"
KINDS = {"runs": "By runs", "law": "By laws", "none": "Neither"}


@dataclass(frozen=True)
class ListedClaim:
    """A claim with its verdict, and what decides it: `runs`, a `law` or `none`."""

    slug: str
    statement: str
    mechanism: str
    kind: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A paper at a scale: its claims, and what is left to run."""

    paper: Paper
    scale: str
    path: str
    claims: tuple[ListedClaim, ...]
    runs: int
    left: str

    def counts(self, kind: str) -> dict[str, int]:
        """Return the number of claims of a kind with each verdict that occurs."""
        return verdict_counts([claim for claim in self.claims if claim.kind == kind])


def index_files(shelf: Shelf) -> dict[str, str]:
    """Return the page in both formats by file name; empty if no paper has a page."""
    all_papers = whole_papers()
    rows = [row for paper in all_papers for row in rows_of(paper, shelf)]
    by_family = {name: [row for row in rows if family_of(row.paper) == name] for name in FAMILIES}
    families = {name: family_rows for name, family_rows in by_family.items() if family_rows}
    claims = [claim for row in rows for claim in row.claims]
    context = {
        "families": families,
        "folder": in_checkout() and FOLDER,
        "trl": DIFFERENCES,
        "selection": any(row.runs and has_scorers(row.paper) for row in rows) and SELECTION,
        "kinds": KINDS,
        "totals": {
            title: verdict_counts([claim for claim in claims if claim.kind == kind])
            for kind, title in KINDS.items()
        },
        "verdicts": VERDICTS,
        "words": [*verdict_counts(claims)],
        "mechanisms": sorted({claim.mechanism for claim in claims} - {""}),
        "script": load_script("index.js"),
    }
    return {
        f"{PAGE}.{form}": environment(form).get_template(f"{PAGE}.{form}.j2").render(context)
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
            claims=tuple(listed_claims(paper, verdicts_of(paper, records, scale))),
            runs=len(runs_of(records, scale)),
            left=to_run(paper, records, scale),
        )
        for scale in shown_at(records)
    ]


def listed_claims(paper: Paper, verdicts: Sequence[VerdictRow]) -> Iterator[ListedClaim]:
    """Yield the claims of a paper with their verdicts."""
    claims = {claim.slug: claim for claim in paper.claims}
    for verdict in verdicts:
        claim, word = claims.get(verdict["id"]), verdict_word(verdict)
        mechanism = claim.mechanism if claim else ""
        yield ListedClaim(verdict["id"], verdict["statement"], mechanism, kind_of(claim), word)


def verdict_counts(claims: Sequence[ListedClaim]) -> dict[str, int]:
    """Return the number of claims with each verdict word that occurs."""
    counts = Counter(claim.verdict for claim in claims)
    return {word: counts[word] for word in VERDICTS if counts[word]}
