"""Renders tables as Markdown, LaTeX, HTML or CSV, with one template for each format."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

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


class Script(NamedTuple):
    """A script of a page and its hash, the only one that the page's policy allows to run."""

    text: str
    hash: str


def load_script(name: str) -> Script:
    """Return a script of the templates with its SHA-256 as content security policies state it."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return Script(text, b64encode(sha256(text.encode()).digest()).decode())


@cache
def environment(fmt: str) -> Environment:
    """Build the Jinja environment of a format, with its delimiters and escaping.

    Raises:
        UnknownName: `fmt` is not a key of `FORMATS`.
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
    """Render the table as `md`, `latex` (a booktabs float), `html` (a page) or `csv`.

    CSV is tidy: one line for each number, with every digit. The other formats print the decimals of
    the number's column. LaTeX needs the packages booktabs and xcolor.

    Raises:
        UnknownName: `fmt` is not a key of `FORMATS`.
    """
    return render_all([table], fmt)


def render_all(tables: Sequence[Table], fmt: str) -> str:
    """Render several tables below each other; as HTML they form one page."""
    template = environment(fmt).get_template(f"table.{fmt}.j2")
    if fmt == "html":
        return template.render(tables=tables)
    return "\n".join(template.render(table=table) for table in tables)
