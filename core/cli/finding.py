"""`repro runs` and `repro compare`: lists recorded runs and compares two of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import AsJson, complete_paper
from core.cli.output import print_columns, print_json, print_text
from core.families.profiles import SCALES
from core.paper.overrides import check_size, field_types, literal, named_texts
from core.paper.registry import find_paper
from core.records.files import write_atomic
from core.records.found import find_record, find_run, find_runs, list_runs
from core.records.index import listed_run
from core.records.places import from_here, record_file
from core.settings.canonical import as_text, canonical
from core.settings.run_settings import NEUTRAL, RunSettings
from eval.errors import BadValue, UnknownName
from eval.terminal import say

if TYPE_CHECKING:
    from core.records.index import ListedScore
    from core.records.schema import RunRecord, ScoreRow
    from core.verdicts.run_differences import ScoreChange

SHORT = 8  # characters of a digest that tell runs apart in a list
AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
Run = Annotated[str, typer.Argument(metavar="RUN", help="Of `repro runs`, or a record's path.")]
Third = Annotated[
    str | None, typer.Argument(metavar="PROFILE", help="A third profile, for the figure.")
]


def runs(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER", help="Slug; default: all papers.", autocompletion=complete_paper
        ),
    ] = None,
    arm: Annotated[str | None, typer.Option(help="Only runs of this arm.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Only runs with this seed.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="SCALE", help="Only runs at this scale.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List recorded runs, the newest last: what ran, its scores with intervals, age and size."""
    if paper is not None:
        find_paper(paper)  # a misspelt name is no empty list
    if at is not None and at not in SCALES:
        raise UnknownName("scale", at, SCALES)
    listed = list_runs(paper, arm=arm, scale=at, seed=seed)
    if as_json:
        return print_json(listed)
    rows = [
        (
            run["digest"][:SHORT],
            run["paper"],
            run["arm"],
            run["seed"],
            run["scale"],
            " ".join(f"{n}={as_text(v)}" for n, v in sorted(run["overrides"].items())) or "-",
            age(run["created"]),
            f"{run['size'] / 1000:.0f} kB",
            ", ".join(map(score_text, run["scores"])) or "-",
        )
        for run in listed
    ]
    head = ("run", "paper", "arm", "seed", "at", "set", "age", "size", "scores")
    return print_columns(head, rows)


Changed = Annotated[
    int, typer.Option(min=0, help="So many answers that changed, with their texts if kept.")
]
Figure = Annotated[
    Path | None, typer.Option(help="Draw curves, or scores of profiles: FILE.svg or FILE.png.")
]


def compare(
    before: Run,
    after: Run,
    third: Third = None,
    samples: Changed = 0,
    figure: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Hold two recorded runs against each other: settings, curves, scores by problem, answers.

    Two recorded profiles are compared by their probes; the figure draws up to three of them.
    """
    records = [find_record(name) for name in (before, after, third) if name is not None]
    if all(record["kind"] == "profile" for record in records):
        from core.cli.profiling import print_compared

        return print_compared(records, figure, samples, as_json=as_json)
    if third is not None:
        raise BadValue(f"{third}: expected three profiles, or two runs")
    old, new = find_run(before), find_run(after)
    if figure is not None:
        draw(figure, old, new)
    if as_json:
        difference = difference_data(old, new, samples)
        return print_json({**difference, "figure": figure and str(figure)})
    print_difference(old, new, samples)
    return print_text(f"figure: {from_here(figure)}") if figure is not None else None


def difference_data(old: "RunRecord", new: "RunRecord", samples: int) -> dict[str, object]:
    """Return the differences of two runs as JSON, with up to `samples` answers of each score."""
    from core.verdicts.run_differences import ends_apart, scores_apart, settings_apart

    records = [record_file(run["paper"], run["digest"]) for run in (old, new)]
    return {
        "runs": [listed_run(record) for record in records],
        "settings": [{"name": n, "before": a, "after": b} for n, a, b in settings_apart(old, new)],
        "curves": [{"name": n, "before": a, "after": b} for n, a, b in ends_apart(old, new)],
        "scores": [score_data(change, samples) for change in scores_apart(old, new)],
    }


def print_difference(old: "RunRecord", new: "RunRecord", samples: int) -> None:
    """Print the differences of two runs, with up to `samples` answers of each score."""
    from core.verdicts.run_differences import ends_apart, scores_apart, settings_apart

    names = [run["digest"][:SHORT] for run in (old, new)]
    scores = list(scores_apart(old, new))  # raises for a damaged file, before anything is printed
    print_columns(("setting", *names), settings_apart(old, new))
    print_text()
    head = ("score", *names, "difference in points", "p", "won", "lost")
    print_columns(head, map(score_line, scores))
    print_text()
    ends = [(n, f"{a:.4g}", f"{b:.4g}") for n, a, b in ends_apart(old, new)]
    print_columns(("curve ends at", *names), ends)
    for change in scores:
        print_answers(change, names, samples)


def print_answers(change: "ScoreChange", names: Sequence[str], count: int) -> None:
    """Print up to `count` answers that changed between two runs, under the runs' names."""
    for row in change.changed[:count]:
        print_text(f"\n{row.problem}: {names[row.won]} alone is right")
        for name, sample in zip(names, (row.before, row.after), strict=True):
            print_text(f"{name} answers {sample.extracted}\n{sample.output or '(no text is kept)'}")


def announce(paper: str, texts: tuple[str, ...], scale: str, arm: str | None, seed: int) -> None:
    """Report a run that is already recorded, before slow imports."""
    resolved_paper = find_paper(paper)
    runs = find_runs(
        resolved_paper.slug, arm=arm or resolved_paper.main_arm, scale=scale, seed=seed
    )
    for run in [run for run in runs if run["overrides"] == as_recorded(texts)][-1:]:
        place = from_here(record_file(run["paper"], run["digest"]))
        say(
            f"{resolved_paper.slug}, {run['arm']} seed {seed} at {scale}: recorded "
            f"{age(run['created'])} ago in {place}; what runs/ lacks of it is made again"
        )


def as_recorded(texts: tuple[str, ...]) -> dict[str, object]:
    """Return `name=value` texts as a record holds them, as far as the trainer's fields allow."""
    hints = field_types(RunSettings)
    return {
        name: canonical(check_size(name, literal(text, hints.get(name))))
        for name, text in named_texts(texts).items()
        if name not in NEUTRAL
    }


def score_text(row: "ScoreRow | ListedScore") -> str:
    """Format a score with its interval."""
    name = f"{row['benchmark']} {row['metric']}"
    return f"{name} {row['value']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"


def score_line(change: "ScoreChange") -> tuple[str, ...]:
    """Return the cells of a score of two runs, with the name of the test beside its p value."""
    d, row = change.difference, change.before
    name = f"{row['benchmark']} {row['mode']} {row['metric']}"
    values = name, f"{row['value']:.1f}", f"{change.after['value']:.1f}"
    if d is None:
        return *values, f"{change.after['value'] - row['value']:+.1f}", "-", "-", "-"
    won = sum(answer.won for answer in change.changed)
    return (
        *values,
        f"{d.delta:+.1f} [{d.low:+.1f}, {d.high:+.1f}]",
        f"{d.p:.3f} ({d.method}{'' if d.paired else ', other problems'})",
        str(won) if d.paired else "-",
        str(len(change.changed) - won) if d.paired else "-",
    )


def score_data(change: "ScoreChange", samples: int) -> dict[str, object]:
    """Return a score of two runs as JSON, with at most `samples` of the changed answers."""
    from dataclasses import asdict

    return {
        "benchmark": change.before["benchmark"],
        "mode": change.before["mode"],
        "metric": change.before["metric"],
        "before": change.before["value"],
        "after": change.after["value"],
        "difference": change.difference and asdict(change.difference),
        "changed": [asdict(answer) for answer in change.changed[:samples]],
    }


def draw(path: Path, *runs: "RunRecord") -> None:
    """Write a figure of the training curves of the first run's paper, a line for each run."""
    from core.families.table import find_family
    from core.pages.figures import is_logged
    from eval.tables.palette import to_bytes
    from eval.tables.plots import training_curves

    figures = find_family(find_paper(runs[0]["paper"]).family).figures
    labels = {name: label for figure in figures for name, label in figure.metrics.items()}
    logged = {name: label for name, label in labels.items() if is_logged(name, runs)}
    renamed = [
        {**run, "arm": f"{run['arm']} {run['seed']}, {run['digest'][:SHORT]}"} for run in runs
    ]
    write_atomic(path, to_bytes(training_curves(renamed, logged), path.suffix.removeprefix(".")))


def age(created: str) -> str:
    """Return the time since `created`, in its largest unit."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()
    for length, unit in AGES:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return "0 s"
