"""`repro table`, `repro report` and `repro publish`: renders records as tables and pages."""

from pathlib import Path
from typing import Annotated

import typer

from core.cli.options import AsJson
from core.cli.output import print_json, print_markdown, print_text, say_loading, tell
from core.records.places import from_here


def table(
    name: Annotated[
        str, typer.Argument(help="A paper for all its tables, one of them, or samples.")
    ],
    systems: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SYSTEM",
            help="For samples: files of graded samples or folders of `repro eval --out`; each is "
            "compared with the first.",
        ),
    ] = None,
    fmt: Annotated[str, typer.Option("--format", help="md, latex, html or csv.")] = "md",
    as_json: AsJson = False,
) -> None:
    """Draw a paper's tables, as printed and of its runs, or compare systems by their samples."""
    from dataclasses import asdict

    from core.pages.tables import tables_named
    from eval.tables import render_all

    tables = tables_named(name, systems or ())
    if as_json:
        return print_json([asdict(item) for item in tables])
    text = render_all(tables, fmt)
    return print_markdown(text.rstrip("\n")) if fmt == "md" else print_text(text, end="")


def report(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER",
            help="Default: all in a checkout, else those of others or with records here.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Render the pages of all records here, published ones and those of runs/, in runs/reports/."""
    say_loading()
    from core.pages.render import render_all
    from core.records.places import no_runs
    from eval.errors import MissingFile

    pages, errors = render_all(tuple(papers or ()))
    if not pages and not errors:
        raise MissingFile(f"nothing to render: {no_runs(*(papers or [])[:1])}")
    if as_json:
        print_json([str(page) for page in pages])
    else:
        print_text("\n".join(map(str, pages)))
    return tell(errors)


def publish(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER",
            help="Default: all with records here; also bench, or pocket.",
        ),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the newest records as the ones to beat.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what was run here, move its records to results/, and render reports/.

    No other command changes these two folders. Records of settings of your own stay in runs/.
    """
    say_loading()
    from core.run.publish import publish as publish_records

    moved, pages = publish_records(names or (), accept=accept)
    if as_json:
        return print_json({"records": [*map(str, moved)], "pages": [*map(str, pages)]})
    for path in moved:
        print_text(f"published: {from_here(path)}")
    return print_text(f"{len(moved)} records published, {len(pages)} pages rendered")
