"""`repro table` and `repro report`: what is rendered from records."""

from pathlib import Path
from typing import Annotated

import typer

from core.cli.options import AsJson
from core.cli.output import print_json, print_markdown, print_text, say_loading, tell


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

    from core.run.pages.tables import tables_named
    from eval.tables import render_all

    found = tables_named(name, systems or ())
    if as_json:
        return print_json([asdict(one) for one in found])
    text = render_all(found, fmt)
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
    """Render reports/ from the records in results/."""
    say_loading()
    from core.run.pages.render import render_all
    from core.run.places import no_runs
    from eval.errors import MissingFile

    pages, errors = render_all(tuple(papers or ()))
    if not pages and not errors:
        raise MissingFile(f"nothing to render: {no_runs(*(papers or [])[:1])}")
    if as_json:
        print_json([str(page) for page in pages])
    else:
        print_text("\n".join(map(str, pages)))
    return tell(errors)
