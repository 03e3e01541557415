"""The page of a family: the verdicts on all claims of its papers, from records alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.families.profiles import SCALES
from core.paper import Paper
from core.run.files import write_atomic
from core.run.pages.verdicts import claim_result, summary
from core.run.places import reports
from core.run.records.record import latest, read_records
from core.run.records.schema import ClaimsRecord, claims_of, place_of
from eval.tables.report import REPORT_FORMATS, Passage, Report, render_report

FOLDER = "families"
RULES = "How its claims are judged, and at which learning rates, is on the page of each paper."


def write_family(name: str, papers: Sequence[Paper], scale: str) -> Path:
    """Write the page in every format; returns that in Markdown."""
    for file, text in family_files(name, papers, scale).items():
        write_atomic(reports() / FOLDER / file, text)
    return reports() / FOLDER / f"{stem(name, scale)}.md"


def family_files(name: str, papers: Sequence[Paper], scale: str) -> dict[str, str]:
    """The page by the names of its files; the same records give the same bytes."""
    page = family_page(name, papers, scale)
    return {f"{stem(name, scale)}.{fmt}": render_report(page, fmt) for fmt in REPORT_FORMATS}


def stem(name: str, scale: str) -> str:
    """The name of the page; that of the smallest scale is the family's first."""
    return name if scale == SCALES[0] else f"{name}-{scale}"


def family_page(name: str, papers: Sequence[Paper], scale: str) -> Report:
    """Every verdict at a scale, paper by paper, and a line for each paper."""
    judged = {paper.slug: verdicts_of(paper, scale) for paper in papers}
    records = [record for record in judged.values() if record is not None]
    rows = [(record["paper"], row) for record in records for row in record["verdicts"]]
    claims = [claim_result(row) for _, row in rows]
    lines = [f"{paper.slug:<24}{state(paper, judged[paper.slug])}" for paper in papers]
    return Report(
        title=f"The papers of the family {name}",
        paper=name,
        scale=scale,
        summary=summary([row for _, row in rows]),
        claims=tuple(
            replace(claim, slug=f"{slug} {claim.slug}", statement=f"{slug}: {claim.statement}")
            for (slug, _), claim in zip(rows, claims, strict=True)
        ),
        rules=RULES,
        passages=(Passage(title="Papers", text="\n".join(lines)),),
        records={f"{place_of(record)}": record["digest"] for record in records},
    )


def verdicts_of(paper: Paper, scale: str) -> ClaimsRecord | None:
    """The newest verdicts on a paper's claims at a scale, if there are any."""
    found = claims_of(latest(read_records(paper.slug)), scale)
    return found[-1] if found else None


def state(paper: Paper, record: Mapping[str, Any] | None) -> str:  # Any: a record of verdicts
    """What there is of a paper, in a few words."""
    if record is None:
        return f"{len(paper.claims)} claims, not judged yet"
    return summary(record["verdicts"])
