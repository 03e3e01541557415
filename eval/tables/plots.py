"""Figures of runs: training curves, held-out accuracy, Maj@K and Pass@K; same bytes every time."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter
from numpy import asarray

from eval.errors import BadValue
from eval.tables.palette import COLOURS, PAPER, STYLE, style
from eval.tables.seed_intervals import mean_interval, same_problems

Record = Mapping[str, Any]
Points = Sequence[tuple[float, float]]

SAMPLED = {"maj": "Maj@K", "pass": "Pass@K"}
MOMENTS = ("before", "after")
MARKED = 8  # points of a line at most that have its marker
NAMED, APART = 7.0, 1.2  # points of the names at the ends of lines, and lines of text between them


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
            for number, (arm, found) in enumerate(arms.items()):
                draw_arm(axes, arm, [points(run, metric) for run in found], number)
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


def grid(count: int) -> tuple[Figure, list[Axes]]:
    """Lay out panels below each other, wide enough to be read on a phone that moves over them."""
    figure = Figure(figsize=(8.4, 2.4 * count + 0.8), layout="constrained")
    return figure, list(figure.subplots(count, squeeze=False).ravel())


def by_arm(runs: Iterable[Record]) -> dict[str, list[Record]]:
    """Group runs by arm, in the order of first appearance."""
    arms: dict[str, list[Record]] = {}
    for run in runs:
        arms.setdefault(run["arm"], []).append(run)
    if not arms:
        raise BadValue("nothing to plot: expected at least one record of kind 'run'")
    return arms


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


def draw_arm(axes: Axes, arm: str, curves: Sequence[Points], number: int) -> None:
    """Draw the mean over the seeds of one arm, and the band that they span."""
    logged = [curve for curve in curves if curve]
    rows = over_seeds(logged) if logged else []
    if not rows:
        return
    steps, mean, low, high = zip(*rows, strict=True)
    (colour, dash, marker), every = style(number), -(-len(rows) // MARKED)
    if len(logged) > 1:
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
    seeds = f"{len(logged)} seed{'s' * (len(logged) > 1)}"
    axes.plot(
        steps,
        mean,
        color=colour,
        linestyle=dash,
        marker=marker,
        markersize=3.5,
        markevery=(number % every, every),  # so that no marker hides that of an equal line
        linewidth=1.6,
        label=f"{arm} ({seeds})",
    )


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


def finish(figure: Figure, panels: Sequence[Axes]) -> None:
    """Put one legend for all panels under the figure and fix the layout once and for all.

    The layout engine would move things a little at every drawing, and with them the bytes.
    """
    labelled: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    if labelled:
        columns = min(4, len(labelled))  # as many as the width takes
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=columns)
    figure.draw_without_rendering()
    for axes in panels:
        name_ends(axes, axes.get_position().height * figure.get_figheight() * 72)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def name_ends(axes: Axes, tall: float) -> None:
    """Name every line right of its end, with a stroke to its name, in a panel so many points tall.

    Names of lines that end at the same step stand below each other.
    """
    to_panel = axes.transData + axes.transAxes.inverted()
    ends = {line: to_panel.transform(end_of(line)) for line in axes.lines}
    for right in dict.fromkeys(round(x, 3) for x, _ in ends.values()):
        lines = [line for line, (x, _) in ends.items() if round(x, 3) == right]
        lines.sort(key=lambda line: ends[line][1])
        places = spread([ends[line][1] for line in lines], APART * NAMED / tall)
        for line, place in zip(lines, places, strict=True):
            name_end(axes, line, (right + 0.025, place))


def end_of(line: Line2D) -> Any:
    """The last point of a line; matplotlib does not say of what type it is."""
    return asarray(line.get_xydata())[-1]


def name_end(axes: Axes, line: Line2D, place: tuple[float, float]) -> None:
    """Write the name of a line at a place of its panel."""
    axes.annotate(
        str(line.get_label()).partition(" (")[0].removesuffix(" RL"),
        end_of(line),
        place,
        textcoords="axes fraction",
        va="center",
        fontsize=NAMED,
        annotation_clip=False,
        ha="left",
        bbox={"boxstyle": "square,pad=0.05", "facecolor": PAPER, "linewidth": 0, "alpha": 0.75},
        arrowprops={
            "arrowstyle": "-",
            "color": line.get_color(),
            "linewidth": 0.6,
            "relpos": (0.0, 0.5),
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def spread(ends: Sequence[float], gap: float) -> list[float]:
    """Rising places from 0 to 1, each as near to its own as a gap between neighbours allows.

    Those for which there is no room reach below 0.
    """
    rising = pushed(ends, gap)
    falling = [-place for place in pushed([-end for end in reversed(ends)], gap)][::-1]
    middle = [(above + below) / 2 for above, below in zip(rising, falling, strict=True)]
    up = pushed(middle, gap, least=0.0)
    down = pushed([-place for place in reversed(up)], gap, least=-1.0)
    return [round(-place, 4) for place in reversed(down)]


def pushed(places: Sequence[float], gap: float, least: float = -inf) -> list[float]:
    """Rising places, each moved up until it is a gap above the one before."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap if found else least))
    return found
