"""A benchmark run as a figure: ratios and single numbers as bars, growth as log-log lines."""
# pyright: basic
# (matplotlib leaves most of its types open)

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from eval.plots import COLOURS, STYLE, finish, to_bytes

Row: TypeAlias = Mapping[str, Any]  # a measure as a record holds it
BAR, PANEL, CURVES = 0.27, 0.65, 2.9  # heights in inches: a bar, what is around them, the curves
AXES = {"completions": "completions", "length": "tokens of each", "group": "completions a prompt"}
MARK: dict[str, Any] = {"color": COLOURS[-1], "linewidth": 2.0, "label": "to be met"}
RATIO = "ratio of the peer's number to ours"


def chart(rows: Sequence[Row]) -> bytes:
    """The figure as SVG; the same rows give the same bytes."""
    bars, curves = bar_groups(rows), curves_by_axis(rows)
    heights = [PANEL + BAR * len(group) for group in bars.values()]
    parts = [sum(heights)] * bool(bars) + [CURVES] * bool(curves)
    with rc_context(STYLE):
        figure = Figure(figsize=(8.4, sum(parts) + 0.4), layout="constrained")
        # Apart, so that the long labels of bars do not push the curves together.
        halves = iter(figure.subfigures(len(parts), 1, squeeze=False, height_ratios=parts).flat)
        panels: list[Axes] = []
        if bars:
            panels += next(halves).subplots(len(bars), squeeze=False, height_ratios=heights).flat
            for axes, (label, group) in zip(panels, bars.items(), strict=True):
                draw_bars(axes, label, group)
        if curves:
            across = list(next(halves).subplots(1, len(curves), squeeze=False).flat)
            for axes, (axis, points) in zip(across, curves.items(), strict=True):
                draw_curve(axes, axis, points, exponents(rows).get(axis))
            panels += across
        finish(figure, panels)
        for axes in panels:  # two layouts of one figure differ in their last bits
            left, bottom, width, height = (round(edge, 6) for edge in axes.get_position().bounds)
            axes.set_position((left, bottom, width, height))
    return to_bytes(figure, "svg")


def bar_groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The measures that are no points of curves by the label of their axis: ratios, or a unit."""
    groups: dict[str, list[Row]] = {RATIO: []}
    for row in rows:
        if row.get("at") is None and row["unit"] != "exponent":
            label = row["unit"] if row["ratio"] is None else RATIO
            groups.setdefault(label, []).append(row)
    return {label: group for label, group in groups.items() if group}


def curves_by_axis(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The points of each curve."""
    curves: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("at") is not None:
            curves.setdefault(row["name"], []).append(row)
    return curves


def exponents(rows: Sequence[Row]) -> dict[str, Row]:
    """The measured exponents by the axis that they belong to."""
    return {r["name"].removeprefix("growth with "): r for r in rows if r["unit"] == "exponent"}


def draw_bars(axes: Axes, label: str, rows: Sequence[Row]) -> None:
    """Horizontal bars with their numbers, and a mark where each has to reach or to stay below."""
    paired = label == RATIO
    values = [row["ratio"] if paired else row["ours"] for row in rows]
    targets = [row.get("at_least" if paired else "at_most") for row in rows]
    longest = max(*values, *(target or 0.0 for target in targets))
    axes.barh(range(len(rows)), values, height=0.62, color=COLOURS[0])
    for place, (row, value, target) in enumerate(zip(rows, values, targets, strict=True)):
        unit = row["unit"]
        sides = f"{value:.2f}x: {row['ours']:.3g} to {row['theirs']:.3g} {unit}" if paired else ""
        axes.text(value + 0.015 * longest, place, sides or f"{value:.3g} {unit}", va="center")
        if target is not None:
            axes.plot([target, target], [place - 0.42, place + 0.42], **MARK)
    axes.set_yticks(range(len(rows)), [f"{row['bench']}: {row['name']}" for row in rows])
    axes.set_xlim(0.0, 1.4 * longest)  # leaves room for the numbers
    axes.set_xlabel(label)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def draw_curve(axes: Axes, axis: str, points: Sequence[Row], exponent: Row | None) -> None:
    """Seconds of both sides against one axis, both logarithmic, with the exponents as title."""
    at = [point["at"] for point in points]
    for side, name, dash, colour in (
        ("ours", "ours", "o-", COLOURS[0]),
        ("theirs", points[0]["peer"], "s--", COLOURS[1]),
    ):
        seconds = [point[side] for point in points]
        axes.plot(at, seconds, dash, color=colour, markersize=3.5, linewidth=1.5, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for scale in (axes.xaxis, axes.yaxis):
        scale.set_major_formatter(StrMethodFormatter("{x:g}"))
        scale.set_minor_locator(NullLocator())
    axes.set_xlabel(AXES.get(axis, axis))
    axes.set_ylabel(f"{points[0]['unit']} per step")
    if exponent is not None:
        ours, theirs = exponent["ours"], exponent["theirs"]
        axes.set_title(f"exponents {ours:.2f} and {theirs:.2f}", fontsize=9, loc="left")
