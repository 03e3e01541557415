"""`repro check`, `repro doctor` and `repro bench`: checks of records, the machine and the speed."""

from collections.abc import Sequence
from contextlib import suppress
from random import randrange
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.loading import load_configs
from core.cli.options import AsJson
from core.cli.output import print_columns, print_json, print_text, say_loading
from core.paper import Paper
from eval.errors import BadValue, ReproError

if TYPE_CHECKING:
    from core.records.schema import MeasureRow

Papers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PAPER",
        help="Default: all in a checkout, else those of others or with records here.",
    ),
]
Accept = Annotated[bool, typer.Option("--accept", hidden=True)]
AskAgain = Annotated[
    bool, typer.Option("--all", help="Grade and render again what passed here before.")
]
Retrain = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Train N recorded runs again, drawn at random, and compare."
    ),
]
Draw = Annotated[
    int | None, typer.Option(metavar="SEED", help="Of that draw; default: a random one.")
]
Within = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Draw only trainings that took at most this long."),
]


def check(
    papers: Papers = None,
    accept: Accept = False,
    ask_again: AskAgain = False,
    retrain: Retrain = None,
    draw: Draw = None,
    within: Within = None,
    as_json: AsJson = False,
) -> int:
    """Check modules, records, samples, reports and regressions; exit code 1 if one fails."""
    from core.paper.registry import find_entry

    if accept:
        raise BadValue("--accept: expected with `repro publish`, which takes the newest records")
    if retrain is None and (draw, within) != (None, None):
        raise BadValue("--draw and --within choose what --retrain N trains: give it too")
    slugs = tuple(find_entry(slug).slug for slug in papers or ())  # before what is slow to import
    if retrain is None:
        load_configs(readable_papers(slugs))
    else:
        say_loading()
    from core.run.check import check_papers

    problems_by_name = check_papers(slugs, ask_again=ask_again)
    if retrain is not None:
        problems_by_name["retrained"] = retrain_runs(slugs, retrain, draw, within)
    if as_json:
        print_json(problems_by_name)
    else:
        for name, problems in problems_by_name.items():
            print_problems(name, problems)
    return 1 if any(problems_by_name.values()) else 0


def readable_papers(slugs: Sequence[str]) -> list[Paper]:
    """Return the named papers, or all; without those that a check will report as unreadable."""
    from core.paper.registry import entries, find_entry, lineage

    papers: list[Paper] = []
    for entry in map(find_entry, slugs) if slugs else entries().values():
        with suppress(ReproError):
            papers += lineage(entry.load())[-1:]
    return papers


# What is checked without records of a paper of that name.
WITHOUT_RECORDS = ("claims", "trl", "index", "families", "selection", "results", "retrained")


def print_problems(name: str, problems: Sequence[str]) -> None:
    """Print the problems of a paper, or of another part that `repro check` examines."""
    from core.records.places import record_files
    from core.records.sealed import absent_texts

    has_records = name in WITHOUT_RECORDS or record_files("bench" if name == "speed" else name)
    ok = "ok" if has_records else "ok, but there are no records to check"
    print_text(f"{name}: {f'{len(problems)} problems' if problems else ok}")
    for line in problems or filter(None, [absent_texts(name)]):
        print_text(f"  {line}")


def retrain_runs(
    slugs: Sequence[str], count: int, draw: int | None, within: float | None
) -> list[str]:
    """Train recorded runs again and return the differences to their records."""
    from core.paper.registry import find_entry
    from core.records.places import own_entries
    from core.run.retrain import retrain
    from eval.terminal import say

    seed = randrange(2**32) if draw is None else draw
    say(f"--retrain {count} --draw {seed}")
    papers = [find_entry(slug) for slug in slugs] or own_entries()
    return retrain(papers, count, draw=seed, within=within)


def doctor(
    verifier: Annotated[
        str | None,
        typer.Option(metavar="BENCHMARK", help="Only try the verifier of its answers; 1 if bad."),
    ] = None,
    as_json: AsJson = False,
) -> int | None:
    """Say what this machine is and which scales it can run."""
    if verifier is not None:
        from core.cli.graders import show_trials

        return show_trials(verifier, as_json=as_json)
    say_loading()
    from core.run.doctor import diagnosis

    rows = diagnosis()
    if as_json:
        return print_json(rows)
    return print_columns(("what", "found"), list(rows.items()))


def bench(
    what: Annotated[
        list[str] | None, typer.Argument(metavar="WHAT", help="Default: all that can run here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed and memory, side by side with the peer where there is one."""
    say_loading()
    from core.bench.table import bench as measure
    from eval.tables.filters import short

    rows = measure(what or ())
    if as_json:
        return print_json(rows)
    head = ("bench", "what", "ours", "peer", "theirs", "ratio", "to be met")
    return print_columns(
        head,
        [
            (
                row["bench"],
                row["name"] if row.get("at") is None else f"{row['name']} = {row.get('at')}",
                f"{short(row['ours'])} {row['unit']}",
                row["peer"] or "-",
                "-" if row["theirs"] is None else f"{short(row['theirs'])} {row['unit']}",
                "-" if row["ratio"] is None else f"{row['ratio']:.2f}",
                _target(row),
            )
            for row in rows
        ],
    )


def _target(row: "MeasureRow") -> str:
    """Return the requirement of a measure and whether it is met; "-" without one."""
    if row.get("met") is None:
        return "-"
    at_least, at_most = row.get("at_least"), row.get("at_most")
    requirement = f"ratio >= {at_least:g}" if at_least is not None else f"ours <= {at_most:g}"
    return f"{requirement}: {'met' if row.get('met') else 'NOT met'}"
