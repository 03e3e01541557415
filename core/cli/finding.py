"""`repro runs` and `repro compare`: recorded runs, found again and held against each other."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import AsJson, complete_paper
from core.cli.output import print_columns, print_json, print_text
from core.families.profiles import SCALES
from core.paper.overrides import bounded, field_types, literal, named_texts
from core.paper.registry import find_paper
from core.records.files import write_atomic
from core.records.found import find_run, find_runs, list_runs
from core.records.index import listed_run
from core.records.places import from_here, record_file
from core.settings.canonical import as_text, canonical
from core.settings.run_settings import NEUTRAL, RunSettings
from eval.errors import UnknownName
from eval.terminal import say

if TYPE_CHECKING:
    from core.records.schema import RunRecord, ScoreRow
    from core.verdicts.run_differences import ScoreChange

SHORT = 8  # characters of a digest that tell runs apart in a list
AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
Run = Annotated[str, typer.Argument(metavar="RUN", help="Of `repro runs`, or a record's path.")]


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
    found = list_runs(paper, arm=arm, scale=at, seed=seed)
    if as_json:
        return print_json(found)
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
        for run in found
    ]
    head = ("run", "paper", "arm", "seed", "at", "set", "age", "size", "scores")
    return print_columns(head, rows)


def compare(
    before: Run,
    after: Run,
    samples: Annotated[
        int, typer.Option(min=0, help="So many answers that changed, with their texts if kept.")
    ] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the curves over each other: FILE.svg or FILE.png.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold two recorded runs against each other: settings, curves, scores by problem, answers."""
    old, new = find_run(before), find_run(after)
    from core.verdicts.run_differences import ends_apart, scores_apart, settings_apart

    settings, ends = list(settings_apart(old, new)), list(ends_apart(old, new))
    scores = list(scores_apart(old, new))
    if figure is not None:
        draw(figure, old, new)
    if as_json:
        return print_json(
            {
                "runs": [
                    listed_run(record_file(run["paper"], run["digest"])) for run in (old, new)
                ],
                "settings": [{"name": n, "before": a, "after": b} for n, a, b in settings],
                "curves": [{"name": n, "before": a, "after": b} for n, a, b in ends],
                "scores": [score_data(one, samples) for one in scores],
                "figure": figure and str(figure),
            }
        )
    names = [run["digest"][:SHORT] for run in (old, new)]
    print_columns(("setting", *names), settings)
    print_text()
    head = ("score", *names, "difference in points", "p", "won", "lost")
    print_columns(head, [score_line(one) for one in scores])
    print_text()
    print_columns(("curve ends at", *names), [(n, f"{a:.4g}", f"{b:.4g}") for n, a, b in ends])
    for row in (row for one in scores for row in one.changed[:samples]):
        print_text(f"\n{row.problem}: {names[row.won]} alone is right")
        for name, sample in zip(names, (row.before, row.after), strict=True):
            print_text(f"{name} answers {sample.extracted}\n{sample.output or '(no text is kept)'}")
    if figure is not None:
        print_text(f"figure: {from_here(figure)}")
    return None


def announce(paper: str, given: tuple[str, ...], at: str, arm: str | None, seed: int) -> None:
    """Say where a run is recorded already, before what is slow to import."""
    found = find_paper(paper)
    runs = find_runs(found.slug, arm=arm or found.main_arm, scale=at, seed=seed)
    for run in [run for run in runs if run["overrides"] == as_recorded(given)][-1:]:
        place = from_here(record_file(run["paper"], run["digest"]))
        say(
            f"{found.slug}, {run['arm']} seed {seed} at {at}: recorded {age(run['created'])} ago "
            f"in {place}; what runs/ lacks of it is made again"
        )


def as_recorded(given: tuple[str, ...]) -> dict[str, object]:
    """What a record holds of `name=value` texts, as far as can be said without the trainer's."""
    hints = field_types(RunSettings)
    return {
        name: canonical(bounded(name, literal(text, hints.get(name))))
        for name, text in named_texts(given).items()
        if name not in NEUTRAL
    }


def score_text(row: "ScoreRow") -> str:
    """A score with its interval."""
    name = f"{row['benchmark']} {row['metric']}"
    return f"{name} {row['value']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"


def score_line(one: "ScoreChange") -> tuple[str, ...]:
    """A score of two runs; the name of the test stands beside its p."""
    d, row = one.difference, one.before
    name = f"{row['benchmark']} {row['mode']} {row['metric']}"
    values = name, f"{row['value']:.1f}", f"{one.after['value']:.1f}"
    if d is None:
        return *values, f"{one.after['value'] - row['value']:+.1f}", "-", "-", "-"
    won = sum(each.won for each in one.changed)
    return (
        *values,
        f"{d.delta:+.1f} [{d.low:+.1f}, {d.high:+.1f}]",
        f"{d.p:.3f} ({d.method}{'' if d.paired else ', other problems'})",
        str(won) if d.paired else "-",
        str(len(one.changed) - won) if d.paired else "-",
    )


def score_data(one: "ScoreChange", samples: int) -> dict[str, Any]:
    """A score of two runs as JSON, with so many of the answers that changed."""
    from dataclasses import asdict

    return {
        "benchmark": one.before["benchmark"],
        "mode": one.before["mode"],
        "metric": one.before["metric"],
        "before": one.before["value"],
        "after": one.after["value"],
        "difference": one.difference and asdict(one.difference),
        "changed": [asdict(each) for each in one.changed[:samples]],
    }


def draw(path: Path, *runs: "RunRecord") -> None:
    """Draw what the paper of the first run shows of its training, a line for each run."""
    from core.families.table import find_family
    from core.pages.figures import is_logged
    from eval.tables.palette import to_bytes
    from eval.tables.plots import training_curves

    figures = find_family(find_paper(runs[0]["paper"]).family).figures
    named = {name: label for one in figures for name, label in one.metrics.items()}
    logged = {name: label for name, label in named.items() if is_logged(name, runs)}
    told = [{**run, "arm": f"{run['arm']} {run['seed']}, {run['digest'][:SHORT]}"} for run in runs]
    write_atomic(path, to_bytes(training_curves(told, logged), path.suffix.removeprefix(".")))


def age(created: str) -> str:
    """How long ago something was made."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()
    for length, unit in AGES:
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return "0 s"
