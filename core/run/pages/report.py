"""What the page of a paper shows at a scale, in Markdown and HTML, with its tables and figures."""

from collections.abc import Mapping, Sequence

from core.families.profiles import SCALES
from core.paper import Paper
from core.paper.registry import entries, find_entry
from core.run.differences import remarks
from core.run.files import as_text
from core.run.pages.differences import departures
from core.run.pages.figures import make_pictures
from core.run.pages.runs import by_arm, runs_table
from core.run.pages.tables import measured_tables, printed_tables
from core.run.pages.trials import trial_passages
from core.run.pages.verdicts import claim_result, rules, summary
from core.run.records.controls import controls_of
from core.run.records.judged import without_runs
from core.run.records.schema import Record, RunRecord, claims_of, runs_of, tunings_of
from core.run.resolve import resolve
from eval.tables import render
from eval.tables.report import REPORT_FORMATS, Field, Passage, Picture, Report, render_report
from eval.tables.table import Table

OWN_SCALE = SCALES[-1]  # that of the paper
NO_RUNS = "Exact claims are judged by their laws; those that are untested wait for runs."
SUFFIX = {"md": "md", "latex": "tex", "html": "html", "csv": "csv"}


def report_files(paper: Paper, records: Sequence[Record], scale: str) -> dict[str, str | bytes]:
    """Every file of a report by name; the same records give the same bytes.

    Without runs it is the page alone: what the paper says, and the verdicts that need no run.
    """
    runs = [run for some in by_arm(paper, runs_of(records, scale)).values() for run in some]
    if not runs:
        tables = tuple(printed_tables(paper, records, text=False))
        return pages(make_report(paper, records, (), scale, tables, ()))
    pictures = make_pictures(paper, runs)
    files: dict[str, str | bytes] = {picture.path: picture.svg for picture in pictures}
    tables = (
        *printed_tables(paper, records, text=False),
        runs_table(paper, records, scale),
        *measured_tables(paper, records, scale),
    )
    for table in tables:
        files |= {f"{table.name}.{SUFFIX[fmt]}": render(table, fmt) for fmt in SUFFIX}
    context = make_report(paper, records, runs, scale, tables, pictures)
    return files | pages(context)


def pages(context: Report) -> dict[str, str | bytes]:
    """The page in every format by the name of its file."""
    return {f"report.{fmt}": render_report(context, fmt) for fmt in REPORT_FORMATS}


def make_report(
    paper: Paper,
    records: Sequence[Record],
    runs: Sequence[RunRecord],
    scale: str,
    tables: tuple[Table, ...],
    pictures: tuple[Picture, ...],
) -> Report:
    """Everything that the page shows."""
    main = next((run for run in runs if run["main"]), runs[0] if runs else None)
    judged = claims_of(records, scale)
    claims = [one for one in judged if not one["overrides"]] or judged
    elsewhere = [one for one in judged if one not in claims]
    verdicts = claims[-1]["verdicts"] if claims else without_runs(paper)
    own = {row["id"]: row for row in (claims[-1].get("own_rates", []) if claims else [])}
    tunings = tunings_of(records, scale)
    used = [*runs, *tunings, *claims[-1:], *elsewhere, *controls_of(records, runs)]
    return Report(
        title=paper.title,
        paper=paper.slug,
        scale=scale,
        summary=summary(verdicts),
        claims=tuple(
            claim_result(verdict, own.get(verdict["id"]), elsewhere) for verdict in verdicts
        ),
        rules=rules(claims[-1], runs) if claims else NO_RUNS,
        tables=tables,
        pictures=pictures,
        specified=settings_at(paper, OWN_SCALE) if scale != OWN_SCALE else (),
        settings=settings_of(main) if main else settings_at(paper, scale),
        departures=departures(paper),
        remarks=tuple(remarks(paper)),
        caveats=caveats(paper.slug),
        passages=(*trial_passages(tunings), *(passages(main) if main else ())),
        versions=main["versions"] if main else {},
        records={f"{r['paper']}/{r['digest']}.json": r["digest"] for r in used},
    )


def settings_of(run: RunRecord) -> tuple[Field, ...]:
    """The settings of a run that are no defaults."""
    return tuple(
        Field(name=name, value=str(v["value"]), source=v["source"])
        for name, v in sorted(run["config"].items())
    )


def settings_at(paper: Paper, scale: str) -> tuple[Field, ...]:
    """The settings that a run of the main arm has at a scale and that are no defaults."""
    return tuple(
        Field(name=name, value=as_text(v.value), source=v.source)
        for name, v in sorted(resolve(paper, scale=scale).values.items())
    )


def caveats(slug: str) -> tuple[str, ...]:
    """The list items of a paper's docstring."""
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
    """The batch plan and the phase table of a run."""
    found = [Passage(title="Batch plan", text=str(run["train"]["plan"]))]
    phases: Mapping[str, float] = run["timings"].get("phases", {})
    if phases:
        found.append(Passage(title="Where the time went", text=phase_table(phases)))
    return tuple(found)


def phase_table(phases: Mapping[str, float]) -> str:
    """Seconds and share of every phase."""
    total = sum(phases.values()) or 1.0
    rows = [f"{name:<10}{s:>10.2f}{100 * s / total:>8.1f} %" for name, s in phases.items()]
    return "\n".join([f"{'phase':<10}{'seconds':>10}{'share':>10}", *rows])
