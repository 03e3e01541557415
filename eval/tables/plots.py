"""Figures of runs: training curves, held-out accuracy, Maj@K and Pass@K; same bytes every time."""

import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from itertools import cycle, islice
from statistics import fmean
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from eval.errors import BadValue, UnknownName
from eval.tables.seed_intervals import mean_interval, same_problems

Record = Mapping[str, Any]
Points = Sequence[tuple[float, float]]

# Okabe and Ito's palette without its yellow, which white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
SAMPLED = {"maj": "Maj@K", "pass": "Pass@K"}
MOMENTS = ("before", "after")
STYLE: dict[Any, Any] = {  # matplotlib types its keys as a closed list of literals
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.grid": True,
    "grid.color": "#e3e6e9",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "legend.frameon": False,
    "svg.hashsalt": "repro",
    "svg.fonttype": "none",  # words that can be searched and read aloud, at half the size
}
OUTLINE, NUMBER = re.compile(rb' d="[^"]*"'), re.compile(rb"-?\d+\.\d+")
METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}


def training_curves(runs: Iterable[Record], metrics: Mapping[str, str]) -> Figure:
    """Plot logged metrics against the optimizer step: the mean over seeds in the band they span.

    `metrics` maps the logged name to the label of its axis, with the unit.

    Raises:
        BadValue: no run at all.

    """
    arms = by_arm(runs)
    with rc_context(STYLE):
        figure, panels = grid(len(metrics))
        for axes, (metric, label) in zip(panels, metrics.items(), strict=True):
            for (arm, found), colour, dash in zip(arms.items(), *styles(len(arms)), strict=True):
                draw_arm(axes, arm, [points(run, metric) for run in found], colour, dash)
            axes.set_xlabel("optimizer step")
            axes.set_ylabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        finish(figure, panels)
    return figure


def sampling_curves(runs: Iterable[Record], benchmarks: Mapping[str, str]) -> Figure:
    """Plot Maj@K and Pass@K against K before and after RL, one panel a benchmark, 95 % bands.

    Several runs are seeds of one arm and are averaged. `benchmarks` maps names to panel titles.

    Raises:
        BadValue: no run, runs of several arms, or seeds that were sampled at different K.

    """
    arms = by_arm(runs)
    if len(arms) != 1:
        raise BadValue(f"Maj@K and Pass@K of {sorted(arms)}: expected the runs of one arm")
    found = next(iter(arms.values()))
    with rc_context(STYLE):
        figure, panels = grid(len(benchmarks))
        for axes, (benchmark, title) in zip(panels, benchmarks.items(), strict=True):
            draw_sampling(axes, [run["sampling"].get(benchmark, {}) for run in found])
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("K (samples per problem)")
            axes.set_ylabel("accuracy (%)")
        finish(figure, panels)
    return figure


def to_bytes(figure: Figure, fmt: str) -> bytes:
    """Write the figure as `svg` or `png`, without dates or versions in it.

    Raises:
        UnknownName: no such format.

    """
    if fmt not in METADATA:
        raise UnknownName("figure format", fmt, METADATA)
    FigureCanvasAgg(figure)
    buffer = BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format=fmt, dpi=120, metadata=METADATA[fmt])
    return OUTLINE.sub(rounded, buffer.getvalue()) if fmt == "svg" else buffer.getvalue()


def rounded(outline: re.Match[bytes]) -> bytes:
    """An outline with two decimals, a 100th of a point, where matplotlib writes six."""
    return NUMBER.sub(lambda found: b"%g" % round(float(found[0]), 2), outline[0])


def grid(count: int) -> tuple[Figure, list[Axes]]:
    """Lay out panels in two columns, a single one over the whole width."""
    columns = min(2, count)
    rows = -(-count // columns)
    size = (8.4, 2.7 * rows + 0.4) if count > 1 else (8.4, 4.0)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def by_arm(runs: Iterable[Record]) -> dict[str, list[Record]]:
    """Group runs by arm, in the order of first appearance."""
    arms: dict[str, list[Record]] = {}
    for run in runs:
        arms.setdefault(run["arm"], []).append(run)
    if not arms:
        raise BadValue("nothing to plot: expected at least one record of kind 'run'")
    return arms


def styles(count: int) -> tuple[list[str], list[Any]]:
    """Choose colours and dashes that differ in both, for colour-blind eyes and grey printers."""
    return list(islice(cycle(COLOURS), count)), list(islice(cycle(DASHES), count))


def points(run: Record, metric: str) -> Points:
    """Read one logged curve in the order of its steps, without gaps that were logged as None."""
    curve = [(step, value) for step, value in run["curves"].get(metric, ()) if value is not None]
    return sorted(curve)


def over_seeds(curves: Sequence[Points]) -> list[tuple[float, float, float, float]]:
    """Step, mean, least and greatest value at the steps that every seed logged.

    At the others the mean would change its members.
    """
    values = [dict(curve) for curve in curves]
    steps = sorted(set.intersection(*(set(value) for value in values)))
    found = [(step, [value[step] for value in values]) for step in steps]
    return [(step, fmean(each), min(each), max(each)) for step, each in found]


def draw_arm(axes: Axes, arm: str, curves: Sequence[Points], colour: str, dash: Any) -> None:
    """Draw the mean over the seeds of one arm, and the band that they span."""
    logged = [curve for curve in curves if curve]
    rows = over_seeds(logged) if logged else []
    if not rows:
        return
    steps, mean, low, high = zip(*rows, strict=True)
    if len(logged) > 1:
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
    seeds = f"{len(logged)} seed{'s' * (len(logged) > 1)}"
    axes.plot(steps, mean, color=colour, linestyle=dash, linewidth=1.8, label=f"{arm} ({seeds})")


def draw_sampling(axes: Axes, sampled: Sequence[Mapping[str, Any]]) -> None:
    """Draw Maj@K and Pass@K before and after RL for one benchmark, averaged over the seeds."""
    for colour, (name, label) in zip(COLOURS, SAMPLED.items(), strict=False):
        for dash, marker, moment in zip(("--", "-"), ("o", "s"), MOMENTS, strict=True):
            curves = [found[moment] for found in sampled if moment in found]
            if not curves:
                continue
            ks, middle, low, high = sampled_mean(curves, name)
            axes.fill_between(ks, low, high, color=colour, alpha=0.12, linewidth=0)
            axes.plot(
                ks,
                middle,
                color=colour,
                linestyle=dash,
                marker=marker,
                markersize=3.5,
                linewidth=1.5,
                label=f"{label} {moment} RL",
            )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    if not axes.lines:
        axes.text(0.5, 0.5, "not sampled", ha="center", transform=axes.transAxes)


def sampled_mean(
    curves: Sequence[Mapping[str, Any]], name: str
) -> tuple[list[int], list[float], list[float], list[float]]:
    """Average one measure over the seeds at every K, with its 95 % interval."""
    ks = list(curves[0]["k"])
    if any(list(curve["k"]) != ks for curve in curves):
        raise BadValue(f"seeds sampled at K = {[list(curve['k']) for curve in curves]}")
    parts = [[curve[f"{name}{end}"] for curve in curves] for end in ("", "_low", "_high")]
    middle, low, high, shared = [], [], [], same_problems(curves)
    for position in range(len(ks)):
        columns = [[curve[position] for curve in part] for part in parts]
        mean, below, above = mean_interval(*columns, shared=shared)
        middle.append(mean)
        low.append(below)
        high.append(above)
    return ks, middle, low, high


def finish(figure: Figure, panels: Iterable[Axes]) -> None:
    """Put one legend for all panels under the figure and fix the layout once and for all.

    The layout engine would move things a little at every drawing, and with them the bytes.
    """
    labelled: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    if labelled:
        columns = min(4, len(labelled))  # as many as the width of two panels takes
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=columns)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
