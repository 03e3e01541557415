"""A benchmark run as a figure: ratios and single numbers as bars, growth as log-log lines."""
# pyright: basic
# (matplotlib leaves most of its types open)

from collections.abc import Mapping, Sequence
from math import ceil, floor, log2
from typing import Any, TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from eval.tables.filters import short
from eval.tables.palette import COLOURS, STYLE, to_bytes

Row: TypeAlias = Mapping[str, Any]  # a measure as a record holds it
WIDTH, LETTER = 8.4, 0.07  # inches
BAR, PANEL, CURVES, LEGEND = 0.27, 0.55, 2.9, 0.3  # heights in inches; PANEL: what is under bars
AXES = {"completions": "completions", "length": "tokens of each", "group": "completions a prompt"}
MARK: dict[str, Any] = {"color": COLOURS[-1], "linewidth": 2.0, "label": "to be met"}
RATIO = "ratio to the peer: above 1, ours is better"


def chart(rows: Sequence[Row]) -> bytes:
    """Draw the figure and return it as SVG; the same rows give the same bytes.

    Panels are placed in inches, as the solver of a layout engine is not exactly reproducible.
    """
    bars, curves = bar_groups(rows), curves_by_axis(rows)
    labels = [bar_label(row) for group in bars.values() for row in group]
    label_width, third = (
        0.2 + LETTER * max(map(len, labels), default=0),
        WIDTH / max(1, len(curves)),
    )
    heights = [PANEL + BAR * len(group) for group in bars.values()] + [CURVES] * bool(curves)
    top = 0.1 + sum(heights) + LEGEND
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, top))
        for height, (label, group) in zip(heights, bars.items(), strict=False):
            bounds = (
                label_width,
                top - 0.1 - BAR * len(group),
                WIDTH - label_width - 0.1,
                BAR * len(group),
            )
            draw_bars(panel(figure, *bounds), label, group)
            top -= height
        for place, (axis, points) in enumerate(curves.items()):
            bounds = (third * place + 0.65, top - CURVES + 0.55, third - 0.8, CURVES - 0.85)
            draw_curve(panel(figure, *bounds), axis, points, exponents(rows).get(axis))
        legends = [axes.get_legend_handles_labels() for axes in figure.axes]
        entries = {name: handle for legend in legends for handle, name in zip(*legend, strict=True)}
        figure.legend(
            entries.values(), entries.keys(), loc="lower center", ncols=max(1, len(entries))
        )
    return to_bytes(figure, "svg")


def panel(figure: Figure, x: float, y: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches from the lower left corner."""
    wide, tall = figure.get_size_inches()
    return figure.add_axes((x / wide, y / tall, width / wide, height / tall))


def bar_label(row: Row) -> str:
    """Return the label of a bar."""
    return f"{row['bench']}: {row['name']}"


def bar_groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the measures that are no points of curves, by the label of their axis."""
    groups: dict[str, list[Row]] = {RATIO: []}
    for row in rows:
        if row.get("at") is None and row["unit"] != "exponent":
            alone = row["ratio"] is None  # seconds of one workload may be minutes of the next
            label = f"{row['bench']} ({row['unit']})" if alone else RATIO
            groups.setdefault(label, []).append(row)
    return {label: group for label, group in groups.items() if group}


def curves_by_axis(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the points of each curve by the name of its axis."""
    curves: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("at") is not None:
            curves.setdefault(row["name"], []).append(row)
    return curves


def exponents(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the measured exponents by axis."""
    return {r["name"].removeprefix("growth with "): r for r in rows if r["unit"] == "exponent"}


def draw_bars(axes: Axes, label: str, rows: Sequence[Row]) -> None:
    """Draw horizontal bars with their numbers, and a mark at the target of each."""
    paired = label == RATIO
    values = [row["ratio"] if paired else row["ours"] for row in rows]
    targets = [row.get("at_least" if paired else "at_most") for row in rows]
    longest = max(*values, *(target or 0.0 for target in targets))
    axes.barh(range(len(rows)), values, height=0.62, color=COLOURS[0])
    for place, (row, value, target) in enumerate(zip(rows, values, targets, strict=True)):
        text = short(value)
        if paired:
            text = f"{value:.2f}x: {short(row['ours'])} against {short(row['theirs'])}"
        text_place = max(value, target or 0.0) + 0.015 * longest  # the mark would strike it through
        axes.text(text_place, place, f"{text} {row['unit']}", va="center")
        if target is not None:
            axes.plot([target, target], [place - 0.42, place + 0.42], **MARK)
    axes.set_yticks(range(len(rows)), [bar_label(row) for row in rows])
    axes.set_xlim(0.0, 1.8 * longest)  # leaves room for the numbers
    axes.set_xlabel(label)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def draw_curve(axes: Axes, axis: str, points: Sequence[Row], exponent: Row | None) -> None:
    """Draw the seconds of both sides against one axis, log-log, with the exponents as title."""
    sizes = [point["at"] for point in points]
    for side, name, dash, colour in (
        ("ours", "ours", "o-", COLOURS[0]),
        ("theirs", points[0]["peer"], "s--", COLOURS[1]),
    ):
        seconds = [point[side] for point in points]
        axes.plot(sizes, seconds, dash, color=colour, markersize=3.5, linewidth=1.5, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    seconds = [point[side] for point in points for side in ("ours", "theirs")]
    axes.set_ylim(2.0 ** floor(log2(min(seconds))), 2.0 ** ceil(log2(max(seconds))))  # for ticks
    for scale in (axes.xaxis, axes.yaxis):
        scale.set_major_formatter(StrMethodFormatter("{x:g}"))
        scale.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES.get(axis, axis))
    axes.set_ylabel(f"{points[0]['unit']} per step")
    if exponent is not None:
        ours, theirs = exponent["ours"], exponent["theirs"]
        axes.set_title(f"exponents {ours:.2f} and {theirs:.2f}", fontsize=9, loc="left")
