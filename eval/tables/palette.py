"""The style of figures: colours for light and dark pages, dashes and markers."""

import re
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eval.errors import UnknownName

INK, PAPER, GRID = "#1b1f24", "#ffffff", "#e3e6e9"
# Okabe and Ito's palette without its yellow, which is hard to see on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)
# The counterpart of each colour on the dark page of `templates/page.css`.
DARK = {
    PAPER: "#14171a",
    INK: "#e8eaed",
    GRID: "#31373e",
    "#0072b2": "#4da3dd",
    "#d55e00": "#ff8a4c",
    "#009e73": "#2fc896",
    "#cc79a7": "#e29ac2",
    "#56b4e9": "#a5dcff",
    "#e69f00": "#f0b429",
}
Dash = str | tuple[int, tuple[int, ...]]
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # 8 markers and 7 dashes give 56 pairs
STYLE: dict[Any, Any] = {  # Any: matplotlib types its keys as a closed list of literals
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.color": GRID,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
    "svg.hashsalt": "repro",
    "svg.fonttype": "none",  # text stays text: searchable, accessible, half the size
}
COORDINATES, NUMBER = re.compile(rb' (?:d|x|y)="[^"]*"'), re.compile(rb"-?\d+\.\d+")
METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def style(number: int) -> tuple[str, Dash, str]:
    """Return the colour, dash and marker of a line, distinct in grey and without colour vision."""
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    return colour, dash, MARKERS[number % len(MARKERS)]


def to_bytes(figure: Figure, fmt: str) -> bytes:
    """Render the figure as `svg` or `png`, without dates or versions in the file.

    An SVG follows the page's light or dark colour scheme; a viewer without media queries shows the
    light colours.

    Raises:
        UnknownName: `fmt` is not one of these formats.
    """
    if fmt not in METADATA:
        raise UnknownName("figure format", fmt, METADATA)
    FigureCanvasAgg(figure)
    buffer = BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format=fmt, dpi=120, metadata=METADATA[fmt])
    if fmt != "svg":
        return buffer.getvalue()
    return COORDINATES.sub(round_coordinates, buffer.getvalue()).replace(
        b"</style>", dark_rules() + b"</style>"
    )


def round_coordinates(attribute: re.Match[bytes]) -> bytes:
    """Round the coordinates of an SVG attribute to one decimal, a tenth of a point."""
    return NUMBER.sub(lambda number: b"%g" % round(float(number[0]), 1), attribute[0])


def dark_rules() -> bytes:
    """Return the CSS rules that replace each colour of a figure on a dark page."""
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in DARK.items()
        for part in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme:dark){{{rules}}}".encode()
