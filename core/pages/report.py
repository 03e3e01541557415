"""The page of a paper at a scale, in Markdown and HTML, with its tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from core.families.profiles import SCALES
from core.pages.claim_rows import claim_rows, limits_of
from core.pages.differences import departures
from core.pages.every_seed import seeds_table
from core.pages.examples import examples_of, rule_of
from core.pages.families import state_of, to_run
from core.pages.figures import make_pictures
from core.pages.mechanisms import arm_statistics
from core.pages.runs import by_arm, measured_in, newest
from core.pages.stored import files_of
from core.pages.tables import printed_tables, scale_tables, shown_at
from core.pages.trials import trial_passages
from core.pages.verdicts import rules, summary
from core.paper import Paper
from core.paper.registry import entries, find_entry
from core.records.places import page_of
from core.records.schema import Record, RunRecord, claims_of, runs_of, tunings_of
from core.settings.canonical import as_text
from core.settings.differences import remarks
from core.settings.resolve import resolve
from core.verdicts.controls import controls_of
from core.verdicts.simulations import simulation_records
from core.verdicts.verdict_records import without_runs
from eval.tables import render
from eval.tables.report import REPORT_FORMATS, Field, Link, Passage, Report, render_report

OWN_SCALE = SCALES[-1]  # that of the paper
NO_RUNS = "Exact claims are judged by their laws; those that are untested wait for runs."
SUFFIX = {"md": "md", "latex": "tex", "html": "html", "csv": "csv"}


def report_files(
    paper: Paper, records: Sequence[Record], scale: str, folder: Path, *, alone: bool = False
) -> dict[str, str | bytes]:
    """Return every file of a report by name; the same records give the same bytes.

    The report lies in `folder`. A report that stands `alone` has no links to those of the paper's
    other scales. Without runs it is the page alone: what the paper says, and the verdicts that need
    no run.
    """
    runs = [run for arm_runs in by_arm(paper, runs_of(records, scale)).values() for run in arm_runs]
    page = make_report(paper, records, runs, scale, folder)
    files: dict[str, str | bytes] = {}
    if not alone:
        page = replace(page, scales=other_scales(paper, records, scale))
    if runs:
        page = with_runs(page, paper, records, runs, folder)
        files |= {picture.path: picture.svg for picture in page.pictures}
        for table in (*page.tables, *page.printed):
            files |= {f"{table.name}.{SUFFIX[fmt]}": render(table, fmt) for fmt in SUFFIX}
    return files | {f"report.{fmt}": render_report(page, fmt) for fmt in REPORT_FORMATS}


def make_report(
    paper: Paper, records: Sequence[Record], runs: Sequence[RunRecord], scale: str, folder: Path
) -> Report:
    """Return the parts of the page that need no run: the paper, its settings and the verdicts."""
    all_claims = claims_of(records, scale)
    claims = [record for record in all_claims if not record["overrides"]] or all_claims
    elsewhere = [record for record in all_claims if record not in claims]
    verdicts = claims[-1]["verdicts"] if claims else without_runs(paper, records)
    own_verdicts = claims[-1].get("own_rates", []) if claims else []
    tunings = tunings_of(records, scale)
    used_records = [*runs, *tunings, *claims[-1:], *elsewhere, *controls_of(records, runs)]
    used_records += simulation_records(records)
    return Report(
        title=paper.title,
        paper=paper.slug,
        address=paper.address,
        place=paper.place,
        scale=scale,
        summary=f"{summary(verdicts)} {to_run(paper, records, scale)}".strip(),
        claims=claim_rows(paper, verdicts, runs, own_verdicts, elsewhere),
        rules=rules(claims[-1], runs) if claims else NO_RUNS,
        worlds=limits_of(verdicts, runs),
        printed=tuple(printed_tables(paper, records, text=False)),
        specified=settings_at(paper, OWN_SCALE) if scale != OWN_SCALE else (),
        settings=settings_at(paper, scale),
        departures=departures(paper),
        remarks=tuple(remarks(paper)),
        caveats=caveats(paper.slug),
        passages=trial_passages(tunings),
        records=files_of(used_records, folder),
    )


def with_runs(
    page: Report, paper: Paper, records: Sequence[Record], runs: Sequence[RunRecord], folder: Path
) -> Report:
    """Return the page with tables, figures, examples and settings of its runs."""
    newer = newest(records, paper, page.scale)
    main = next((run for run in newer if run["main"]), newer[0])
    return replace(
        page,
        statistics=arm_statistics([(paper, runs)]),
        tables=tuple(scale_tables(paper, records, page.scale)),
        chosen=rule_of(main),
        examples=examples_of(main, folder),
        pictures=make_pictures(paper, runs),
        seeds=seeds_table(paper, newer, page.scale, folder) if measured_in(newer) else None,
        settings=settings_of(main),
        passages=(*page.passages, *passages(main)),
        versions=main["versions"],
    )


def other_scales(paper: Paper, records: Sequence[Record], scale: str) -> tuple[Link, ...]:
    """Return links to the pages of a paper's other scales, with the verdicts there."""
    return tuple(
        Link(
            name=other_scale,
            path=f"../../{page_of(paper.slug, other_scale)}",
            text=state_of(paper, records, other_scale),
        )
        for other_scale in shown_at(records)
        if other_scale != scale
    )


def settings_of(run: RunRecord) -> tuple[Field, ...]:
    """Return the settings of a run that differ from the defaults."""
    return tuple(
        Field(name=name, value=str(v["value"]), source=v["source"])
        for name, v in sorted(run["config"].items())
    )


def settings_at(paper: Paper, scale: str) -> tuple[Field, ...]:
    """Return the settings of the main arm at a scale that differ from the defaults."""
    return tuple(
        Field(name=name, value=as_text(v.value), source=v.source)
        for name, v in sorted(resolve(paper, scale=scale).values.items())
    )


def caveats(slug: str) -> tuple[str, ...]:
    """Return the list items of a paper's docstring."""
    if slug not in entries():
        return ()
    items: list[str] = []
    for line in find_entry(slug).text().splitlines():
        if line.startswith("- "):
            items.append(line.removeprefix("- "))
        elif items and line.startswith("  "):
            items[-1] += f" {line.strip()}"
    return tuple(items)


def passages(run: RunRecord) -> tuple[Passage, ...]:
    """Return the batch plan of a run, and the table of its phases if they were timed."""
    texts = [Passage(title="Batch plan", text=str(run["train"]["plan"]))]
    if phases := run["timings"].get("phases"):
        texts.append(Passage(title="Where the time went", text=phase_table(phases)))
    return tuple(texts)


def phase_table(phases: Mapping[str, float]) -> str:
    """Format the seconds and the share of each phase, one line each."""
    total = sum(phases.values()) or 1.0
    rows = [f"{name:<10}{s:>10.2f}{100 * s / total:>8.1f} %" for name, s in phases.items()]
    return "\n".join([f"{'phase':<10}{'seconds':>10}{'share':>10}", *rows])
