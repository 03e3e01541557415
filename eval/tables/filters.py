"""What templates call to print a number or a text safely; nothing else formats a number."""

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
# How a formula of a spreadsheet begins; the last four are full-width forms of `=+-@`.
FORMULA = re.compile("[\t\r\n]|\\s*[-=+@\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", re.IGNORECASE | re.ASCII)


def fixed(value: float, places: int = 1) -> str:
    """Round half up on the decimal that the float prints as: 0.25 is 0.3, 88.2487 is 88.2."""
    exact = Decimal(repr(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def short(value: float) -> str:
    """Print three significant digits, and all that stand before the decimal point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def exact(value: float | None) -> str:
    """Print the shortest text that reads back as the same float, nothing for no number."""
    return "" if value is None else repr(float(value))


def places_for(width: float) -> int:
    """Decimals that show two significant digits of `width`, between 1 and 9."""
    return 1 if width <= 0 else min(9, max(1, 1 - floor(log10(width))))


def signed(value: float, places: int) -> str:
    """As `fixed`, with the sign of anything but zero."""
    text = fixed(value, places)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def effect(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Print a difference with its interval, in the digits that the interval's width can support."""
    if value is None:
        return "-"
    if low is None or high is None:
        return signed(value, places_for(abs(value)))
    places = places_for((high - low) / 2)
    return f"{signed(value, places)} [{signed(low, places)}, {signed(high, places)}]"


def probability(p: float | None) -> str:
    """Print a p value to three decimals, `< 0.001` below that."""
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else fixed(p, 3)


def arrow(sign: str) -> str:
    """Mark a significant difference by its direction."""
    return {"": "", "+": "↑", "-": "↓"}[sign]


def compared(versus: Versus) -> str:
    """Print a comparison: the difference with its interval, the test, its p and n."""
    difference = effect(versus.delta, versus.low, versus.high)
    p = probability(versus.p)
    return f"{difference} points, {versus.method} p {p if p[0] == '<' else f'= {p}'}, n={versus.n}"


def tex(text: str) -> str:
    """Text in which no character means anything to LaTeX."""
    return "".join(TEX.get(character, character) for character in one_line(text))


def md(text: str) -> str:
    r"""Text for a Markdown cell: one line, and no character that starts markup."""
    escaped = re.sub(r"([\\`*|\[\]]|<(?=[\w/!?]))", r"\\\1", one_line(text))
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", escaped)


def csv(text: str | None) -> str:
    """Quote a CSV field (RFC 4180), with `'` before what a spreadsheet would run as a formula.

    A number with a sign is no formula.
    """
    plain = text or ""
    runs = FORMULA.match(plain) and not NUMBER.fullmatch(plain)
    return '"' + ("'" if runs else "") + plain.replace('"', '""') + '"'


def breakable(text: str) -> Markup:
    """Let a name of HTML break after its underscores, and so not in the middle of a word."""
    return escape(text).replace("_", Markup("_<wbr>"))


def prose(text: str) -> Markup:
    """A sentence in HTML; what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(breakable(text))))


def one_line(text: str) -> str:
    """Write every run of white space as one space."""
    return " ".join(str(text).split())


def fenced(text: str) -> str:
    """A text as a block of Markdown in which nothing is markup."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible(text)}\n{fence}"


def headings(page: str) -> list[tuple[str, Markup]]:
    """The id and the text of every heading of the second level."""
    found = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', page)
    return [(name, Markup(text)) for name, text in found]


def width(text: str) -> int:
    """Columns a terminal gives the text; Chinese characters take two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def aligned(text: str) -> str:
    """Pad the columns of a Markdown table, to the side that its rule says."""
    rows = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in text.strip().splitlines()]
    rows = [[field.strip() for field in row] for row in rows]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = [rule.endswith(":") for rule in rows[1]]
    lines = []
    for position, row in enumerate(rows):
        fields = []
        for field, size, to_right in zip(row, widths, right, strict=True):
            gap = size - width(field)
            if position == 1:
                fields.append("-" * (size - to_right) + ":" * to_right)
            else:
                fields.append(" " * gap + field if to_right else field + " " * gap)
        lines.append("| " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


FILTERS = {
    "breakable": breakable,
    "prose": prose,
    "fixed": fixed,
    "short": short,
    "exact": exact,
    "effect": effect,
    "probability": probability,
    "arrow": arrow,
    "compared": compared,
    "tex": tex,
    "md": md,
    "csv": csv,
    "one_line": one_line,
    "visible": visible,
    "fenced": fenced,
    "headings": headings,
    "aligned": aligned,
}
