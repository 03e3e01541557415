"""`repro clean`: what lies in runs/ and no record refers to."""

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from core.cli.finding import age
from core.cli.options import AsJson
from core.cli.output import print_columns, print_json, print_text
from core.records.places import from_here, root

MB = 1e6


def clean(
    unfinished: Annotated[
        bool,
        typer.Option("--unfinished", help="Stages too from which a killed command would go on."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    as_json: AsJson = False,
) -> int:
    """List what no record refers to in runs/, and delete it if you say so; records stay.

    That is what superseded records were made of, and finished stages of commands that have not
    come to a record yet. Nothing is deleted while a command works in runs/. What is asked for
    again is made again.
    """
    from core.records.runs_lock import alone_in_runs
    from core.run.leftovers import leftovers

    found = leftovers(unfinished=unfinished)
    if as_json:
        print_json([{"path": str(one.path), "why": one.why, "size": one.size} for one in found])
        return 0
    total = f"{sum(one.size for one in found) / MB:.1f} MB in {root() / 'runs'}"
    if not found:
        print_text("nothing: records refer to all that lies in runs/")
        return 0
    rows = [
        (
            from_here(one.path),
            f"{one.size / MB:.1f}",
            age(changed(one.path.stat().st_mtime)),
            one.why,
        )
        for one in found
    ]
    print_columns(("path", "MB", "age", "why"), rows)
    if not (yes or (sys.stdin.isatty() and typer.confirm(f"delete {total}?", err=True))):
        print_text(f"nothing was deleted; --yes deletes these {total}")
        return 0
    named = {one.path for one in found}
    with alone_in_runs():
        removed = [one for one in leftovers(unfinished=unfinished) if one.path in named]
        for one in removed:
            one.remove()
    deleted = sum(one.size for one in removed) / MB
    print_text(f"deleted {deleted:.1f} MB in {root() / 'runs'}")
    return 0


def changed(seconds: float) -> str:
    """A file's time as records write it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
