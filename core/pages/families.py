"""The page of a family: all claims of its papers that runs judge, by mechanism, as one picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.claims.claim import MECHANISMS
from core.families.profiles import SCALES
from core.families.table import FAMILIES, listed_families
from core.pages.claim_rows import claim_rows, limits_of
from core.pages.mechanisms import arm_statistics
from core.pages.runs import newest
from core.pages.stored import files_of
from core.pages.tables import shown_at
from core.pages.verdicts import summary
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.files import write_atomic
from core.records.places import Shelf, page_of
from core.records.record import latest, read_records
from core.records.schema import ClaimsRecord, Record, claims_of, runs_of
from core.records.verdict_row import VerdictRow
from core.verdicts.verdict_records import without_runs
from eval.tables.arm_statistics import ArmStatistics
from eval.tables.interval_bar import REACH
from eval.tables.render import environment
from eval.tables.report import REPORT_FORMATS, ClaimResult, File
from eval.tables.verdict_words import VERDICTS

FOLDER = "families"


@dataclass(frozen=True)
class ClaimOfPaper:
    """A claim with its paper, and the path of the paper's page without its ending."""

    paper: str
    path: str
    claim: ClaimResult


@dataclass(frozen=True)
class MechanismGroup:
    """The claims about one mechanism that runs judge, and the number of each verdict."""

    mechanism: str
    rows: tuple[ClaimOfPaper, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class FamilyPage:
    """The fields of the page of a family.

    `worlds` says what each world cannot show, and `words` are the verdicts that occur in `groups`.
    """

    name: str
    scale: str
    summary: str
    papers: Mapping[str, str]
    worlds: Mapping[str, str]
    words: tuple[str, ...]
    groups: tuple[MechanismGroup, ...]
    laws: tuple[ClaimOfPaper, ...]
    untestable: tuple[ClaimOfPaper, ...]
    statistics: ArmStatistics | None
    records: tuple[File, ...]


def families_files(scale: str, shelf: Shelf) -> dict[str, str]:
    """Return the pages of all families that have papers, by their places among the reports."""
    all_papers = whole_papers()
    heads = [name for name, family in FAMILIES.items() if family.listed_with in ("", name)]
    papers = {
        name: [family for family in all_papers if family.family in listed_families(name)]
        for name in heads
    }
    return {
        f"{FOLDER}/{file}": text
        for name, members in papers.items()
        if members
        for file, text in family_files(name, members, scale, shelf).items()
    }


def write_family(name: str, papers: Sequence[Paper], scale: str) -> Path:
    """Write the page of a family in every format; return that in Markdown."""
    folder = Shelf.HERE.reports / FOLDER
    for file, text in family_files(name, papers, scale, Shelf.HERE).items():
        write_atomic(folder / file, text)
    return folder / f"{stem(name, scale)}.md"


def family_files(name: str, papers: Sequence[Paper], scale: str, shelf: Shelf) -> dict[str, str]:
    """Return the page of a family by file name; the same records give the same bytes."""
    page = family_page(name, papers, scale, shelf)
    return {
        f"{stem(name, scale)}.{fmt}": environment(fmt)
        .get_template(f"family.{fmt}.j2")
        .render(page=page, verdicts=VERDICTS, reach=REACH)
        for fmt in REPORT_FORMATS
    }


def stem(name: str, scale: str) -> str:
    """Return the file name of a page without its ending; the smallest scale is left out of it."""
    return name if scale == SCALES[0] else f"{name}-{scale}"


def family_page(name: str, papers: Sequence[Paper], scale: str, shelf: Shelf) -> FamilyPage:
    """Return the page with the claims of papers at a scale."""
    records = {paper.slug: latest(read_records(paper.slug, shelf)) for paper in papers}
    runs = [(paper, newest(records[paper.slug], paper, scale)) for paper in papers]
    verdicts = {paper.slug: verdicts_of(paper, records[paper.slug], scale) for paper in papers}
    rows = [
        ClaimOfPaper(paper.slug, f"../{page_of(paper.slug, scale)}", row)
        for paper, paper_runs in runs
        for row in claim_rows(paper, verdicts[paper.slug], paper_runs)
    ]
    groups = mechanism_groups([row for row in rows if row.claim.kind == "runs"])
    all_verdicts = [verdict for paper in papers for verdict in verdicts[paper.slug]]
    pairs = zip(all_verdicts, rows, strict=True)
    judged = [found for one in records.values() if (found := judged_at(one, scale))]
    return FamilyPage(
        name=name,
        scale=scale,
        summary=summary([verdict for verdict, row in pairs if row.claim.kind == "runs"]),
        papers={
            paper.slug if other_scale == scale else f"{paper.slug} at {other_scale}": (
                f"../{page_of(paper.slug, other_scale)}"
            )
            for paper in papers
            for other_scale in dict.fromkeys([scale, *shown_at(records[paper.slug])])
        },
        worlds={
            name: limits
            for paper, paper_runs in runs
            for name, limits in limits_of(verdicts[paper.slug], paper_runs).items()
        },
        words=tuple(word for word in VERDICTS if any(group.counts.get(word) for group in groups)),
        groups=groups,
        laws=tuple(row for row in rows if row.claim.kind == "law"),
        untestable=tuple(row for row in rows if row.claim.kind == "none"),
        statistics=arm_statistics(
            [(paper, paper_runs) for paper, paper_runs in runs if paper_runs]
        ),
        records=files_of(judged, shelf.reports / FOLDER),
    )


def mechanism_groups(rows: Sequence[ClaimOfPaper]) -> tuple[MechanismGroup, ...]:
    """Return claims by mechanism, in the order of `MECHANISMS`; unknown ones come last."""
    names = [row.claim.mechanism for row in rows]
    order = [name for name in dict.fromkeys((*MECHANISMS, *names)) if name in names]
    groups = [(name, [row for row in rows if row.claim.mechanism == name]) for name in order]
    return tuple(
        MechanismGroup(name, tuple(members), Counter(row.claim.verdict for row in members))
        for name, members in groups
    )


def judged_at(records: Sequence[Record], scale: str) -> ClaimsRecord | None:
    """Return the newest record of verdicts at a scale, None if there is none."""
    claims = claims_of(records, scale)
    return claims[-1] if claims else None


def verdicts_of(paper: Paper, records: Sequence[Record], scale: str) -> Sequence[VerdictRow]:
    """Return the newest verdicts at a scale, or those that need no run if there are none."""
    claims = judged_at(records, scale)
    return claims["verdicts"] if claims else without_runs(paper)


def to_run(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which arms that claims need have no run yet, or why the paper is not run."""
    if paper.not_run:
        return f"Not run here: {paper.not_run}."
    ran = {run["arm"] for run in runs_of(records, scale)}
    arms_to_run = [arm for arm in paper.claimed_arms(scale) if arm not in ran]
    return f"To run: {', '.join(arms_to_run)}." if arms_to_run else ""


def state_of(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which verdicts a paper's claims have at a scale, and which arms are left to run."""
    state = f"{summary(verdicts_of(paper, records, scale))} {to_run(paper, records, scale)}"
    return state.strip()
