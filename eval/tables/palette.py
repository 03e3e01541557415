"""How figures look: colours of a light and a dark page, dashes, markers; same bytes every time."""

import re
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eval.errors import UnknownName

INK, PAPER, GRID = "#1b1f24", "#ffffff", "#e3e6e9"
# Okabe and Ito's palette without its yellow, which white paper swallows.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", INK)
# What each is on the dark page of `templates/page.css`.
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
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # not as many as dashes: 56 pairs
STYLE: dict[Any, Any] = {  # matplotlib types its keys as a closed list of literals
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
    "svg.fonttype": "none",  # words that can be searched and read aloud, at half the size
}
PLACES, NUMBER = re.compile(rb' (?:d|x|y)="[^"]*"'), re.compile(rb"-?\d+\.\d+")
METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def style(number: int) -> tuple[str, Any, str]:
    """Colour, dash and marker of a line, for colour-blind eyes and grey printers too."""
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    return colour, dash, MARKERS[number % len(MARKERS)]


def to_bytes(figure: Figure, fmt: str) -> bytes:
    """Write the figure as `svg` or `png`, without dates or versions in it.

    An SVG has the colours of the page that it is on, light or dark; a reader that knows no media
    queries shows the light ones.

    Raises:
        UnknownName: no such format.

    """
    if fmt not in METADATA:
        raise UnknownName("figure format", fmt, METADATA)
    FigureCanvasAgg(figure)
    buffer = BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format=fmt, dpi=120, metadata=METADATA[fmt])
    if fmt != "svg":
        return buffer.getvalue()
    return PLACES.sub(rounded, buffer.getvalue()).replace(b"</style>", in_the_dark() + b"</style>")


def rounded(places: re.Match[bytes]) -> bytes:
    """Places with one decimal, a tenth of a point, where matplotlib writes six."""
    return NUMBER.sub(lambda found: b"%g" % round(float(found[0]), 1), places[0])


def in_the_dark() -> bytes:
    """The rules that give each colour of a figure its other one."""
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in DARK.items()
        for part in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme:dark){{{rules}}}".encode()
