"""The page of a family: the verdicts on all claims of its papers, and the arms still to run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any  # Any: a verdict

from core.claims import Claim, Comparison
from core.families.profiles import SCALES
from core.families.table import FAMILIES, listed_families
from core.pages.stored import files_of
from core.pages.tables import shown_at
from core.pages.verdicts import claim_result, measured_suites, summary
from core.paper import Paper
from core.paper.registry import whole_papers
from core.records.files import write_atomic
from core.records.places import Shelf, page_of
from core.records.record import latest, read_records
from core.records.schema import ClaimsRecord, Record, claims_of, runs_of
from core.verdicts.verdict_records import without_runs
from eval.tables.report import REPORT_FORMATS, Link, Report, render_report

FOLDER = "families"
RULES = "How its claims are judged, and at which learning rates, is on the page of each paper."


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
    return {f"{stem(name, scale)}.{fmt}": render_report(page, fmt) for fmt in REPORT_FORMATS}


def stem(name: str, scale: str) -> str:
    """Return the file name of a page without its ending; the smallest scale is left out of it."""
    return name if scale == SCALES[0] else f"{name}-{scale}"


def family_page(name: str, papers: Sequence[Paper], scale: str, shelf: Shelf) -> Report:
    """Return the page with all verdicts at a scale, and a line for each paper."""
    records = {paper.slug: latest(read_records(paper.slug, shelf)) for paper in papers}
    judged = [
        found for paper_records in records.values() if (found := judged_at(paper_records, scale))
    ]
    rows = [(one.slug, row) for one in papers for row in verdicts_of(one, records[one.slug], scale)]
    exact = sum(is_exact(claim) for paper in papers for claim in paper.claims)
    suites = {
        slug: measured_suites(runs_of(paper_records, scale))
        for slug, paper_records in records.items()
    }
    claims = [claim_result(row, suites=suites[slug]) for slug, row in rows]
    return Report(
        title=f"The papers of the family {name}",
        paper=name,
        scale=scale,
        summary=f"{summary([row for _, row in rows])} Exact, by a law: {exact}.".strip(),
        claims=tuple(
            replace(claim, slug=f"{slug} {claim.slug}", statement=f"{slug}: {claim.statement}")
            for (slug, _), claim in zip(rows, claims, strict=True)
        ),
        rules=RULES,
        links=tuple(
            Link(
                name=paper.slug if other_scale == scale else f"{paper.slug} at {other_scale}",
                path=f"../{page_of(paper.slug, other_scale)}",
                text=state_of(paper, paper_records, other_scale),
            )
            for paper, paper_records in zip(papers, records.values(), strict=True)
            for other_scale in dict.fromkeys([scale, *shown_at(paper_records)])
        ),
        records=files_of(judged, shelf.reports / FOLDER),
    )


def judged_at(records: Sequence[Record], scale: str) -> ClaimsRecord | None:
    """Return the newest record of verdicts at a scale, None if there is none."""
    claims = claims_of(records, scale)
    return claims[-1] if claims else None


def verdicts_of(paper: Paper, records: Sequence[Record], scale: str) -> Sequence[Mapping[str, Any]]:
    """Return the newest verdicts at a scale, or those that need no run if there are none."""
    claims = judged_at(records, scale)
    return claims["verdicts"] if claims else without_runs(paper)


def to_run(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which arms that claims need have no run yet, or why the paper is not run."""
    if paper.not_run:
        return f"Not run here: {paper.not_run}."
    ran = {run["arm"] for run in runs_of(records, scale)}
    arms_to_run = [arm for arm in paper.claimed_arms if arm not in ran]
    return f"To run: {', '.join(arms_to_run)}." if arms_to_run else ""


def is_exact(claim: Claim) -> bool:
    """Return whether a claim is exact, so that a law decides it."""
    return isinstance(claim.test, Comparison) and claim.test.kind == "exact"


def state_of(paper: Paper, records: Sequence[Record], scale: str) -> str:
    """Say which verdicts a paper's claims have at a scale, and which arms are left to run."""
    state = f"{summary(verdicts_of(paper, records, scale))} {to_run(paper, records, scale)}"
    return state.strip()
