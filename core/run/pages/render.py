"""Renders reports/ from records: the page in Markdown and HTML, its tables and its figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.families.profiles import SCALES
from core.families.table import find_family
from core.paper import Paper
from core.paper.registry import entries, find_entry
from core.run.differences import remarks
from core.run.files import as_text, write_atomic
from core.run.layers import Sourced
from core.run.order import Outcome
from core.run.pages.claims import claims_files
from core.run.pages.differences import departures, differences_files
from core.run.pages.families import write_families
from core.run.pages.runs import by_arm, runs_table, title_of
from core.run.pages.speed import speed_files
from core.run.pages.tables import measured_tables, printed_tables, publish_reported, ran_at
from core.run.pages.trials import trial_passages
from core.run.pages.verdicts import claim_result, rules, summary, verdict_line
from core.run.places import claims_table, reports, root
from core.run.records.controls import controls_of, shown_records
from core.run.records.fair import fair
from core.run.records.judged import judge_again, without_runs
from core.run.records.record import read_records
from core.run.records.schema import Record, RunRecord, claims_of, runs_of, tunings_of
from core.run.resolve import resolve
from eval.errors import ReproError
from eval.tables import render
from eval.tables.plots import sampling_curves, to_bytes, training_curves
from eval.tables.report import REPORT_FORMATS, Field, Passage, Picture, Report, render_report
from eval.tables.table import Table

OWN_SCALE = SCALES[-1]  # that of the paper
NO_RUNS = "Exact claims are judged by their law; the others need runs that are not there yet."
SUFFIX = {"md": "md", "latex": "tex", "html": "html", "csv": "csv"}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a run prints at its end, and the page with the rest."""

    text: str
    path: Path


def render_outcome(paper: Paper, outcome: Outcome) -> Shown:
    """Render the report and return the table and the verdicts as text.

    Runs with overrides of their own get a page beside the runs, not in reports/.
    """
    publish_reported(paper)
    scale = outcome.claims["scale"]
    if outcome.claims["overrides"]:
        folder = root() / "runs" / "reports" / outcome.claims["digest"]
        records = fair([*outcome.runs, *outcome.tunings, outcome.claims])
    else:
        folder = report_folder(paper.slug, scale)
        records = shown_records(paper.slug)
    path = write_report(paper, records, scale, folder)
    shown = render(runs_table(paper, fair([*outcome.runs, *outcome.tunings]), scale), "md")
    lines = "\n".join(verdict_line(verdict) for verdict in outcome.verdicts)
    return Shown(text=f"{shown}\n{lines}", path=path)


def render_all(slugs: tuple[str, ...] = ()) -> tuple[list[Path], list[ReproError]]:
    """Render the reports of papers; without `slugs` of families, speed, claims, TRL.

    The pages, and why others could not be made.
    """
    chosen = [find_entry(slug) for slug in slugs] or list(entries().values())
    pages, errors = list[Path](), list[ReproError]()
    makers = [lambda entry=entry: render_paper(entry.load()) for entry in chosen]
    for make in (
        makers
        if slugs
        else [*makers, render_families, render_speed, render_claims, render_differences]
    ):
        try:
            pages += make()
        except ReproError as error:
            errors.append(error)
    return pages, errors


def render_paper(paper: Paper) -> list[Path]:
    """A page for every scale that has one."""
    publish_reported(paper)
    judge_again(paper)
    records = shown_records(paper.slug)
    return [
        write_report(paper, records, scale, report_folder(paper.slug, scale))
        for scale in shown_at(records)
    ]


def shown_at(records: Sequence[Record]) -> list[str]:
    """The scales that have a page: those with runs, and in a checkout always the smallest."""
    ran = ran_at(records)
    first = SCALES[0]
    return [first, *ran] if claims_table().is_file() and first not in ran else ran


def report_folder(slug: str, scale: str) -> Path:
    """Where the page of a scale lies; that of the smallest one is the paper's first."""
    return reports() / slug / ("" if scale == SCALES[0] else scale)


def render_families() -> list[Path]:
    """The page of every family, in a checkout."""
    return write_families(SCALES[0]) if claims_table().is_file() else []


def render_speed() -> list[Path]:
    """The page of speed, if it was measured."""
    speed = speed_files(read_records("bench"))
    written = [write_atomic(reports() / name, content) for name, content in speed.items()]
    return [path for path in written if path.suffix == ".md"]


def render_claims() -> list[Path]:
    """The page of claims, if there is a table of them."""
    return [write_atomic(reports() / name, page) for name, page in claims_files().items()]


def render_differences() -> list[Path]:
    """The page of differences to TRL, in a checkout."""
    return [write_atomic(reports() / name, page) for name, page in differences_files().items()]


def write_report(paper: Paper, records: Sequence[Record], scale: str, folder: Path) -> Path:
    """Write the page, tables and figures of one paper; returns the Markdown page."""
    files = report_files(paper, records, scale)
    for name, content in files.items():
        write_atomic(folder / name, content)
    return folder / "report.md"


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


def make_pictures(paper: Paper, runs: Sequence[RunRecord]) -> tuple[Picture, ...]:
    """The figures of a report, each drawn once."""
    seeds = len({run["seed"] for run in runs})
    of = f"{paper.slug}, {seeds} seed{'s' if seeds > 1 else ''}"
    family = find_family(paper.family)
    figures = [
        (each.name, f"{each.caption}, {of}.", each.alt, training_curves(runs, each.metrics))
        for each in family.figures
    ]
    sampled = [run for run in runs if run["sampling"] and run["main"]]
    if sampled:
        titles = {suite: title_of(suite) for suite in sampled[0]["sampling"]}
        figure = sampling_curves(sampled, titles)
        caption = f"Maj@K and Pass@K before and after {family.trained_by}, {of}."
        figures.append(("at-k", caption, "Maj@K and Pass@K against K.", figure))
    return tuple(
        Picture(name=n, caption=c, alt=a, svg=to_bytes(f, "svg"), path=f"{n}.svg")
        for n, c, a, f in figures
    )


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
    claims = claims_of(records, scale)
    verdicts: list[dict[str, Any]] = claims[-1]["verdicts"] if claims else []
    if main is None:
        verdicts = without_runs(paper)
    own = {row["id"]: row for row in (claims[-1].get("own_rates", []) if claims else [])}
    tunings = tunings_of(records, scale)
    used = [*runs, *tunings, *claims[-1:], *controls_of(records, runs)]
    return Report(
        title=paper.title,
        paper=paper.slug,
        scale=scale,
        summary=summary(verdicts),
        claims=tuple(claim_result(verdict, own.get(verdict["id"])) for verdict in verdicts),
        rules=rules(claims[-1], runs) if claims else NO_RUNS if main is None else "",
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
    found: Mapping[str, Sourced] = resolve(paper, scale=scale).values
    return tuple(
        Field(name=name, value=as_text(v.value), source=v.source)
        for name, v in sorted(found.items())
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
