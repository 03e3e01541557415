"""Filters of the page templates that format numbers and escape texts."""

import re
from decimal import ROUND_HALF_UP, Decimal
from math import floor, log10
from unicodedata import east_asian_width

from markupsafe import Markup, escape

from eval.tables.table import Versus
from eval.terminal import visible

TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}
# The beginning of a spreadsheet formula; the last four characters are full-width forms of `=+-@`.
FORMULA = re.compile("[\t\r\n]|\\s*[-=+@\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.IGNORECASE | re.ASCII)


def format_fixed(value: float, places: int = 1) -> str:
    """Format a number with `places` decimals, rounding half up on its decimal repr.

    0.25 becomes 0.3, and 88.2487 becomes 88.2.
    """
    exact = Decimal(repr(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def short(value: float) -> str:
    """Format a number with three significant digits, or all digits before the decimal point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def exact(value: float | None) -> str:
    """Format a number as the shortest text that parses to the same float; None becomes ""."""
    return "" if value is None else repr(float(value))


def places_for(width: float) -> int:
    """Return the number of decimals, 1 to 9, that shows two significant digits of `width`.

    It is 1 if the width is 0 or negative.
    """
    return 1 if width <= 0 else min(9, max(1, 1 - floor(log10(width))))


def format_signed(value: float, places: int) -> str:
    """Format a number like `format_fixed`, with its sign unless it is zero."""
    text = format_fixed(value, places)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def effect(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Format a difference with its interval, in as many decimals as the interval supports."""
    if value is None:
        return "-"
    if low is None or high is None:
        return format_signed(value, places_for(abs(value)))
    places = places_for((high - low) / 2)
    difference, lower, upper = (format_signed(number, places) for number in (value, low, high))
    return f"{difference} [{lower}, {upper}]"


def probability(p: float | None) -> str:
    """Format a p value with three decimals, as `< 0.001` below that and as `-` for None."""
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else format_fixed(p, 3)


def arrow(sign: str) -> str:
    """Return the arrow of a significant difference: `↑` for "+", `↓` for "-", "" for ""."""
    return {"": "", "+": "↑", "-": "↓"}[sign]


def format_comparison(versus: Versus) -> str:
    """Format a comparison: the difference with its interval, the test, its p value and n."""
    difference = effect(versus.delta, versus.low, versus.high)
    p = probability(versus.p)
    return f"{difference} points, {versus.method} p {p if p[0] == '<' else f'= {p}'}, n={versus.n}"


def tex(text: str) -> str:
    """Escape a text for LaTeX, as one line."""
    return "".join(TEX.get(character, character) for character in one_line(text))


def md(text: str) -> str:
    """Escape a text for a Markdown table cell, as one line."""
    escaped = re.sub(r"([\\`*|\[\]]|<(?=[\w/!?]))", r"\\\1", one_line(text))
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", escaped)


def csv(text: str | None) -> str:
    """Quote a CSV field (RFC 4180), with `'` before a text that is a spreadsheet formula.

    A signed number is not a formula.
    """
    plain = text or ""
    is_formula = FORMULA.match(plain) and not NUMBER.fullmatch(plain)
    return '"' + ("'" if is_formula else "") + plain.replace('"', '""') + '"'


def breakable(text: str) -> Markup:
    """Escape a name for HTML and allow line breaks after its underscores."""
    return escape(text).replace("_", Markup("_<wbr>"))


def prose(text: str) -> Markup:
    """Escape a sentence for HTML and mark text between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(breakable(text))))


def one_line(text: str) -> str:
    """Replace every run of white space by one space."""
    return " ".join(str(text).split())


def code_block(text: str) -> str:
    """Wrap a text in a Markdown code block whose fence does not occur in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible(text)}\n{fence}"


def headings(page: str) -> list[tuple[str, Markup]]:
    """Return the id and the text of every second-level heading of an HTML page."""
    matches = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', page)
    return [(name, Markup(text)) for name, text in matches]


def width(text: str) -> int:
    """Return the number of terminal columns of a text; wide characters (Chinese) take two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def align_columns(text: str) -> str:
    """Pad the columns of a Markdown table according to the alignment in its second row."""
    rows = [table_fields(line) for line in text.strip().splitlines()]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    aligned_right = [rule.endswith(":") for rule in rows[1]]
    columns = list(zip(widths, aligned_right, strict=True))
    padded = [
        [pad(text, *column) for text, column in zip(row, columns, strict=True)] for row in rows
    ]
    padded[1] = ["-" * (size - right) + ":" * right for size, right in columns]
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)


def table_fields(line: str) -> list[str]:
    """Split a row of a Markdown table at its unescaped bars."""
    return [field.strip() for field in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def pad(text: str, size: int, to_right: bool, /) -> str:
    """Pad a text with spaces to `size` terminal columns, aligned to the left or to the right."""
    gap = " " * (size - width(text))
    return gap + text if to_right else text + gap


FILTERS = {
    "breakable": breakable,
    "prose": prose,
    "fixed": format_fixed,
    "short": short,
    "exact": exact,
    "effect": effect,
    "probability": probability,
    "arrow": arrow,
    "compared": format_comparison,
    "tex": tex,
    "md": md,
    "csv": csv,
    "one_line": one_line,
    "visible": visible,
    "fenced": code_block,
    "headings": headings,
    "aligned": align_columns,
}
