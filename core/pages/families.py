"""The page of a family: all claims of its papers that runs judge, by mechanism, as one picture."""

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from core.claims.claim import MECHANISMS
from core.families.profiles import SCALES
from core.pages.claim_rows import claim_rows, limits_of
from core.pages.mechanisms import arm_statistics
from core.pages.runs import newest
from core.pages.stored import files_of
from core.pages.tables import shown_at
from core.pages.verdicts import summary
from core.paper import Paper
from core.records.places import Shelf, page_of
from core.records.record import latest, read_records
from core.records.schema import ClaimsRecord, Record, RunRecord, claims_of, runs_of
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


@dataclass(frozen=True)
class PaperAtScale:
    """A paper of a family with its records, its newest runs and its verdicts at a scale."""

    paper: Paper
    scale: str
    records: Sequence[Record]

    @cached_property
    def runs(self) -> Sequence[RunRecord]:
        """The newest run of each arm and seed."""
        return newest(self.records, self.paper, self.scale)

    @cached_property
    def verdicts(self) -> Sequence[VerdictRow]:
        """The newest verdicts."""
        return verdicts_of(self.paper, self.records, self.scale)

    @cached_property
    def rows(self) -> list[ClaimOfPaper]:
        """The claims, in the order of `verdicts`."""
        path = f"../{page_of(self.paper.slug, self.scale)}"
        rows = claim_rows(self.paper, self.verdicts, self.runs)
        return [ClaimOfPaper(self.paper.slug, path, row) for row in rows]

    @property
    def judged_by_runs(self) -> list[VerdictRow]:
        """The verdicts of claims that runs judge."""
        pairs = zip(self.verdicts, self.rows, strict=True)
        return [verdict for verdict, row in pairs if row.claim.kind == "runs"]

    @property
    def pages(self) -> dict[str, str]:
        """The paths of the paper's pages at this scale and all others, by the name of the link."""
        slug = self.paper.slug
        scales = dict.fromkeys([self.scale, *shown_at(self.records)])
        return {
            slug if scale == self.scale else f"{slug} at {scale}": f"../{page_of(slug, scale)}"
            for scale in scales
        }


def family_page(name: str, papers: Sequence[Paper], scale: str, shelf: Shelf) -> FamilyPage:
    """Return the page with the claims of papers at a scale."""
    members = members_of(papers, scale, shelf)
    rows = [row for member in members for row in member.rows]
    groups = mechanism_groups(claims_of_kind("runs", rows))
    present = Counter(chain.from_iterable(group.counts for group in groups))
    judged = [judged_at(member.records, scale) for member in members]
    return FamilyPage(
        name=name,
        scale=scale,
        summary=summary([*chain.from_iterable(member.judged_by_runs for member in members)]),
        papers=dict(ChainMap(*[member.pages for member in reversed(members)])),
        worlds=dict(ChainMap(*[limits_of(m.verdicts, m.runs) for m in reversed(members)])),
        words=tuple(filter(present.get, VERDICTS)),
        groups=groups,
        laws=claims_of_kind("law", rows),
        untestable=claims_of_kind("none", rows),
        statistics=arm_statistics([(m.paper, m.runs) for m in members if m.runs]),
        records=files_of(list(filter(None, judged)), shelf.reports / FOLDER),
    )


def members_of(papers: Sequence[Paper], scale: str, shelf: Shelf) -> list[PaperAtScale]:
    """Return papers with their newest records at a scale."""
    records = [latest(read_records(paper.slug, shelf)) for paper in papers]
    return [PaperAtScale(paper, scale, rows) for paper, rows in zip(papers, records, strict=True)]


def claims_of_kind(kind: str, rows: Sequence[ClaimOfPaper]) -> tuple[ClaimOfPaper, ...]:
    """Return the claims that are judged in one way, such as by runs or by a law."""
    return tuple(row for row in rows if row.claim.kind == kind)


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
    return claims["verdicts"] if claims else without_runs(paper, records)


def to_run(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which arms that claims need have no run yet, or why the paper is not run."""
    if paper.not_run:
        return f"Not run here: {paper.not_run}."
    ran = {run["arm"] for run in runs_of(records, scale)}
    judged = judged_at(records, scale)
    claimed = paper.claimed_arms(scale, without=(judged or {}).get("missed", ()))
    arms_to_run = [arm for arm in claimed if arm not in ran]
    return f"To run: {', '.join(arms_to_run)}." if arms_to_run else ""


def state_of(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which verdicts a paper's claims have at a scale, and which arms are left to run."""
    state = f"{summary(verdicts_of(paper, records, scale))} {to_run(paper, records, scale)}"
    return state.strip()
