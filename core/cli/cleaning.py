"""`repro clean`: deletes files in runs/ that no record refers to."""

import sys
from collections.abc import Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.finding import age
from core.cli.options import AsJson
from core.cli.output import print_columns, print_json, print_text
from core.records.places import from_here, root

if TYPE_CHECKING:
    from core.run.leftovers import Leftover

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
    from core.run.leftovers import leftovers

    unused = leftovers(unfinished=unfinished)
    if as_json:
        print_json(
            [{"path": str(item.path), "why": item.why, "size": item.size} for item in unused]
        )
        return 0
    if not unused:
        print_text("nothing: records refer to all that lies in runs/")
        return 0
    print_columns(("path", "MB", "age", "why"), map(cells, unused))
    total = f"{size_of(unused)} MB in {root() / 'runs'}"
    if not (yes or (sys.stdin.isatty() and typer.confirm(f"delete {total}?", err=True))):
        print_text(f"nothing was deleted; --yes deletes these {total}")
        return 0
    removed = delete({item.path for item in unused}, unfinished=unfinished)
    print_text(f"deleted {size_of(removed)} MB in {root() / 'runs'}")
    return 0


def cells(item: "Leftover") -> tuple[object, ...]:
    """Return the cells of an item: its path, its size in MB, its age and why it is unused."""
    changed = datetime.fromtimestamp(item.path.stat().st_mtime, UTC).isoformat()
    return from_here(item.path), f"{item.size / MB:.1f}", age(changed), item.why


def delete(paths: Set[Path], *, unfinished: bool) -> "list[Leftover]":
    """Delete the listed paths that are still unused, while no command works in runs/."""
    from core.records.runs_lock import alone_in_runs
    from core.run.leftovers import leftovers

    with alone_in_runs():
        removed = [item for item in leftovers(unfinished=unfinished) if item.path in paths]
        for item in removed:
            item.remove()
    return removed


def size_of(items: "Sequence[Leftover]") -> str:
    """Return the total size of the items in MB, with one decimal."""
    return f"{sum(item.size for item in items) / MB:.1f}"
