"""How commands print: JSON or aligned plain columns on standard output."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from core.run.store import as_text

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
At = Annotated[str, typer.Option("--at", metavar="SCALE", help="Scale: cpu, gpu or paper.")]
Slug = Annotated[str, typer.Argument(metavar="PAPER", help="Slug, see `repro list`.")]
Settings = Annotated[
    list[str] | None,
    typer.Argument(metavar="name=value", help="Settings that win over all others."),
]


def print_json(value: object) -> None:
    """Indented JSON; values that JSON lacks are printed as Python shows them."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=as_text))


def print_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Left-aligned columns with a header."""
    table = [tuple(map(str, head)), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
