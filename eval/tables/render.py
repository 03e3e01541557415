"""A table as text in one of four formats, through one template each."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval.errors import UnknownName
from eval.tables.filters import FILTERS
from eval.tables.table import Table

TEMPLATES = Path(__file__).parent / "templates"
TEX_DELIMITERS = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}
FORMATS = {
    "md": {},
    "latex": TEX_DELIMITERS,
    "html": {"autoescape": True},
    "csv": {},
}


@cache
def environment(fmt: str) -> Environment:
    """Build the Jinja environment of a format: delimiters, and whether it escapes by itself.

    Raises:
        UnknownName: no such format.

    """
    if fmt not in FORMATS:
        raise UnknownName("table format", fmt, FORMATS)
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **FORMATS[fmt],
    )
    jinja.filters.update(FILTERS)
    return jinja


def render(table: Table, fmt: str) -> str:
    """Write the table as `md`, `latex` (a float for booktabs and xcolor), `html` (a page) or `csv`.

    CSV is tidy: one line per number, with every digit. The others print its column's decimals.

    Raises:
        UnknownName: no such format.

    """
    return render_all([table], fmt)


def render_all(tables: Sequence[Table], fmt: str) -> str:
    """Write several tables below each other; as HTML they are one page."""
    template = environment(fmt).get_template(f"table.{fmt}.j2")
    if fmt == "html":
        return template.render(tables=tables)
    return "\n".join(template.render(table=table) for table in tables)
