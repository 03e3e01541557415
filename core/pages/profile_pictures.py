"""Pictures of profiles: scores as a radar beside their intervals, and training curves."""
# pyright: basic
# (matplotlib leaves most of its types open)

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from core.profiles.scores import Row
from core.records.record import Record
from eval.tables.palette import GRID, INK, STYLE, style, to_bytes

LOWEST, HIGHEST = -1.0, 2.0  # scores beyond are drawn at the edge
WIDTH, LINE, RADAR = 8.4, 0.3, 3.6  # inches
PANEL, ACROSS = 1.6, 3  # height of a panel of curves in inches, and panels beside each other
CURVES: Mapping[str, str] = {"reward": "reward", "held_out/accuracy": "accuracy (%)"}


def scores_picture(algorithms: Mapping[str, Sequence[Row]], base: str, form: str = "svg") -> bytes:
    """Draw the scores of algorithms: a radar, and a forest plot beside it.

    Args:
        algorithms: The rows of each algorithm by its name; rows without a score are left out.
        base: The name of the algorithm whose scores are 0.
        form: The format of the picture, such as svg or png.
    """
    probes = list(
        dict.fromkeys(row.probe.name for rows in algorithms.values() for row in rows if row.score)
    )
    height = max(RADAR, LINE * len(probes) + 0.9)
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height))
        forest = figure.add_axes((0.62, 0.6 / height, 0.36, 1 - 0.9 / height))
        draw_forest(forest, algorithms, probes)
        forest.set_xlabel(f"score: 0 {base}, 1 the mechanism of the probe", fontsize=8)
        if len(probes) >= 3:
            side = 2.6
            radar: Any = figure.add_axes(  # Any: matplotlib's type of all axes
                (0.8 / WIDTH, 0.5 - side / 2 / height, side / WIDTH, side / height),
                projection="polar",
            )
            draw_radar(radar, algorithms, probes)
    return to_bytes(figure, form)


def clip_score(value: float) -> float:
    """Return a score within the range of the pictures."""
    return min(HIGHEST, max(LOWEST, value))


def draw_radar(
    axes: PolarAxes, algorithms: Mapping[str, Sequence[Row]], probes: Sequence[str]
) -> None:
    """Draw one closed line for each algorithm, with a spoke for each probe."""
    angles = [2 * pi * place / len(probes) for place in range(len(probes))]
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(LOWEST, HIGHEST)
    axes.set_yticks([LOWEST, 0.0, 1.0, HIGHEST], ["", "0", "1", ""], fontsize=7)
    axes.set_xticks(angles, [""] * len(probes))
    for angle, probe in zip(angles, probes, strict=True):
        x, y = sin(angle), cos(angle)  # from the north, clockwise
        across = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
        up = "bottom" if y > 0.5 else "top" if y < -0.5 else "center"
        axes.text(angle, HIGHEST + 0.15, probe.replace("-", "\n", 1), fontsize=7, ha=across, va=up)
    ring = [2 * pi * place / 100 for place in range(101)]
    axes.plot(ring, [0.0] * len(ring), color=INK, linewidth=0.8)
    for number, (name, rows) in enumerate(algorithms.items()):
        scores = {row.probe.name: row.score.value for row in rows if row.score}
        points = [
            (angle, clip_score(scores[p]))
            for angle, p in zip(angles, probes, strict=True)
            if p in scores
        ]
        closed = [*points, points[0]]
        colour, dash, _ = style(number)
        axes.plot(
            *zip(*closed, strict=True), color=colour, linestyle=dash, linewidth=1.5, label=name
        )
        axes.fill(*zip(*closed, strict=True), color=colour, alpha=0.1)


def draw_forest(axes: Axes, algorithms: Mapping[str, Sequence[Row]], probes: Sequence[str]) -> None:
    """Draw the interval of each score, one line for each probe."""
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.axvline(1.0, color=GRID, linewidth=1.2, linestyle="--")
    step = 0.7 / len(algorithms)
    for number, (name, rows) in enumerate(algorithms.items()):
        colour, _, marker = style(number)
        for row in rows:
            if row.score is None:
                continue
            place = probes.index(row.probe.name) + step * (number - (len(algorithms) - 1) / 2)
            low = clip_score(row.score.value if row.score.low is None else row.score.low)
            high = clip_score(row.score.value if row.score.high is None else row.score.high)
            axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
            face = colour if row.score.is_apart else "none"
            middle = clip_score(row.score.value)
            axes.plot(
                [middle], [place], marker=marker, markersize=4.5, color=colour,
                markerfacecolor=face, linestyle="none",
            )  # fmt: skip
        axes.plot([], [], color=colour, marker=marker, label=name)
    axes.set_xlim(LOWEST - 0.05, HIGHEST + 0.05)
    axes.set_ylim(len(probes) - 0.4, -0.6)
    axes.set_yticks(range(len(probes)), probes, fontsize=8)
    if len(algorithms) > 1:
        axes.legend(
            fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=len(algorithms)
        )


def curves_picture(records: Mapping[str, Record]) -> bytes:
    """Draw the learning curve of every training as SVG: the mean over the seeds in their band."""
    first = next(iter(records.values()))
    trainings = [name for name, fields in first["trainings"].items() if fields["curves"]]
    lines = max(1, -(-len(trainings) // ACROSS))
    tall, wide = PANEL * lines + 0.4, 1 / ACROSS
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, tall))
        for place, training in enumerate(trainings):
            line, column = divmod(place, ACROSS)
            bottom = 1 - (PANEL * (line + 1) - 0.2) / tall
            axes = figure.add_axes(
                (0.05 + column * wide, bottom, wide - 0.07, (PANEL - 0.5) / tall)
            )
            label = draw_curve(axes, records, training)
            axes.set_title(f"{training}: {label}", fontsize=8, loc="left")
            axes.tick_params(labelsize=7)
        lines_by_panel = [axes.get_lines() for axes in figure.axes]
        if handles := max(lines_by_panel, key=len, default=()):
            figure.legend(handles=handles, loc="lower center", ncols=len(handles), fontsize=8)
    return to_bytes(figure, "svg")


def draw_curve(axes: Axes, records: Mapping[str, Record], training: str) -> str:
    """Draw a curve of each record in a panel: of the first metric that one of them logged.

    Returns:
        The label of the metric.
    """
    curves = [
        record["trainings"].get(training, {}).get("curves", {}) for record in records.values()
    ]
    metric = next((name for name in CURVES if name in curves[0]), next(iter(CURVES)))
    for number, (name, curve) in enumerate(zip(records, curves, strict=True)):
        if metric not in curve:
            continue
        steps, mean, low, high = zip(*curve[metric], strict=True)
        colour, dash, _ = style(number)
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(steps, mean, color=colour, linestyle=dash, linewidth=1.4, label=name)
    return CURVES[metric]
