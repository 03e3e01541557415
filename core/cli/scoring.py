"""`repro score`: grades finished outputs; also prints the scores of other commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import AsJson, Data, Mode, Reported
from core.cli.output import print_columns, print_json, print_text
from eval.json_lines import JsonObject

if TYPE_CHECKING:
    from core.evaluate.reported import Printed
    from eval.stats.summary import Score


OutputFile = Annotated[
    Path, typer.Argument(help="JSONL or .gz with id, output, optional sample and rm_score.")
]
BenchmarkName = Annotated[str, typer.Option(help="Whose answers they are.")]
PerSample = Annotated[
    Path | None, typer.Option(help="Write every verdict with its reason (.jsonl).")
]
Html = Annotated[Path | None, typer.Option(help="Write a page to browse the samples.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="List the samples where the two graders differ.")
]


def score(
    file: OutputFile,
    benchmark: BenchmarkName,
    mode: Mode = "cot",
    per_sample: PerSample = None,
    html: Html = None,
    explain: Explain = False,
    reported: Reported = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Grade finished outputs, without any model: strictly, by the paper's and by official rules."""
    from core.cli.graders import show_graders
    from core.evaluate.outputs import page_of, score_file
    from core.evaluate.reported import as_rows, read_reported, refuse_parts
    from core.records.files import write_atomic
    from eval.errors import BadValue
    from eval.samples.side_by_side import (
        beside,
        judge_both,
        official_score,
        paper_scores,
        verdict_lines,
    )
    from eval.sets.benchmarks import find_benchmark

    if file.resolve() in [out.resolve() for out in (per_sample, html) if out is not None]:
        raise BadValue(f"{file} would be overwritten: give what is written another name")
    scored_benchmark = find_benchmark(benchmark)
    scored_benchmark.check_mode(mode)
    printed = read_reported(reported, [benchmark])
    samples, scores = score_file(file, scored_benchmark, data=data, mode=mode)
    verdicts = judge_both(samples, scored_benchmark.load(data), scored_benchmark, mode)
    paper = paper_scores(
        verdicts, scored_benchmark, [file_score.metric for file_score in scores], mode
    )
    if per_sample is not None:
        write_atomic(per_sample, verdict_lines(verdicts))
    if html is not None:
        title = f"{scored_benchmark.title}: {file.name}"
        page = page_of(verdicts, scored_benchmark, data=data, mode=mode, title=title)
        write_atomic(html, page)
    official = official_score(samples, scored_benchmark.load(data), scored_benchmark)
    rows = beside(as_rows(scores, printed), verdicts, paper, official)
    if not as_json:
        show_scores(scores, printed, as_json=False)
    show_graders(rows, verdicts, explain=explain, as_json=as_json)
    refuse_parts(printed, {benchmark: scores[0].n})


def show_scores(scores: "list[Score]", printed: "Printed", *, as_json: bool) -> None:
    """Print scores with intervals, numbers of problems and notes."""
    from core.evaluate.reported import as_rows

    rows = as_rows(scores, printed)
    if as_json:
        return print_json(rows)
    print_columns(SCORE_HEAD, map(score_row, rows))
    for name, sampling in dict.fromkeys((row["benchmark"], row["drawn"]) for row in rows):
        if sampling:
            print_text(f"{name}: {sampling}")
    for row in rows:
        if "against" in row:
            print_text(against(row))
    return None


SCORE_HEAD = (
    "benchmark",
    "mode",
    "metric",
    "score",
    "95 % interval",
    "problems",
    "method",
    "notes",
)


def score_row(row: JsonObject) -> tuple[object, ...]:
    """Return the cells of a score."""
    return (
        row["benchmark"],
        row["mode"],
        row["metric"],
        f"{row['value']:.1f}",
        f"{row['low']:.1f} to {row['high']:.1f}",
        f"{row['n']} of {row['total']}",
        row["method"],
        ", ".join(score_notes(row)) or "-",
    )


def score_notes(row: JsonObject) -> Iterator[str]:
    """Yield notes on irregular samples of a score: cut, unanswered, undecided, failed programs."""
    if row["truncated"] is None:
        yield "unknown how many are cut"
    shares = {"truncated": "cut", "unanswered": "without an answer", "undecided": "no verdict"}
    for name, label in shares.items():
        if row[name]:
            yield f"{row[name]:.1f} % {label}"
    if row["timeouts"]:
        yield f"{row['timeouts']} timeouts"
    if row["mode"] in ("tir", "pal"):
        yield f"{row['executor_errors']} of {row['programs']} programs failed"


def against(row: JsonObject) -> str:
    """Return a sentence with the verdict on a printed score."""
    comparison = row["against"]
    return (
        f"{row['benchmark']} {row['metric']}: {comparison['verdict']} "
        f"({comparison['delta']:+.1f} points from {comparison['reported']}, "
        f"90 % interval {comparison['low']:.1f} to {comparison['high']:.1f}, "
        f"margin {comparison['margin']:g})"
    )
