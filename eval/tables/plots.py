"""Figures of runs: training curves, held-out accuracy, and Maj@K and Pass@K over K."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf
from statistics import fmean
from typing import TypeAlias

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter
from numpy import asarray

from eval.errors import BadValue
from eval.json_lines import JsonFields
from eval.tables.palette import COLOURS, PAPER, STYLE, style
from eval.tables.seed_intervals import mean_interval, same_problems

Record: TypeAlias = JsonFields  # of a run
Points = Sequence[tuple[float, float]]

SAMPLED = {"maj": "Maj@K", "pass": "Pass@K"}
MOMENTS = ("before", "after")
MAX_MARKERS = 8  # markers of a line at most
NAMED, ROW = 24, 0.2  # lines at most whose ends have names; inches of a row of a longer legend
NAME_SIZE, LINE_SPACING = 7.0, 1.2  # of the names at line ends: font size in points, line height


def training_curves(runs: Iterable[Record], metrics: Mapping[str, str]) -> Figure:
    """Plot logged metrics against the optimizer step: the mean over seeds in the band they span.

    Args:
        runs: The records of runs, of any number of arms and seeds.
        metrics: The axis label with its unit for each logged name.

    Raises:
        BadValue: there are no runs.
    """
    arms = by_arm(runs)
    with rc_context(STYLE):
        figure, panels = grid(len(metrics))
        for axes, (metric, label) in zip(panels, metrics.items(), strict=True):
            for number, (arm, seed_runs) in enumerate(arms.items()):
                draw_arm(axes, arm, [points(run, metric) for run in seed_runs], number)
            axes.set_xlabel("optimizer step")
            axes.set_ylabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        finish(figure, panels)
    return figure


def sampling_curves(runs: Iterable[Record], benchmarks: Mapping[str, str]) -> Figure:
    """Plot Maj@K and Pass@K against K before and after RL, one panel a benchmark, 95 % bands.

    Args:
        runs: The records of one arm; several runs are seeds and are averaged.
        benchmarks: The panel title for each benchmark.

    Raises:
        BadValue: no run, runs of several arms, or seeds that were sampled at different K.
    """
    arms = by_arm(runs)
    if len(arms) != 1:
        raise BadValue(f"Maj@K and Pass@K of {sorted(arms)}: expected the runs of one arm")
    seed_runs = next(iter(arms.values()))
    with rc_context(STYLE):
        figure, panels = grid(len(benchmarks))
        for axes, (benchmark, title) in zip(panels, benchmarks.items(), strict=True):
            draw_sampling(axes, [run["sampling"].get(benchmark, {}) for run in seed_runs])
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("K (samples per problem)")
            axes.set_ylabel("accuracy (%)")
        finish(figure, panels)
    return figure


def grid(count: int) -> tuple[Figure, list[Axes]]:
    """Create a figure with panels below each other, wide enough to read on a scrolling phone."""
    figure = Figure(figsize=(8.4, 2.4 * count + 0.8))
    return figure, list(figure.subplots(count, squeeze=False).ravel())


def by_arm(runs: Iterable[Record]) -> dict[str, list[Record]]:
    """Group runs by arm, in the order of first appearance.

    Raises:
        BadValue: there are no runs.
    """
    arms: dict[str, list[Record]] = {}
    for run in runs:
        arms.setdefault(run["arm"], []).append(run)
    if not arms:
        raise BadValue("nothing to plot: expected at least one record of kind 'run'")
    return arms


def points(run: Record, metric: str) -> Points:
    """Return a logged curve as (step, value) in the order of steps, without None values."""
    curve = [(step, value) for step, value in run["curves"].get(metric, ()) if value is not None]
    return sorted(curve)


def over_seeds(curves: Sequence[Points]) -> list[tuple[float, float, float, float]]:
    """Return (step, mean, minimum, maximum) at each step that every seed logged.

    At other steps the mean would be over fewer seeds.
    """
    values = [dict(curve) for curve in curves]
    steps = sorted(set.intersection(*(set(value) for value in values)))
    rows = [(step, [value[step] for value in values]) for step in steps]
    return [(step, fmean(row), min(row), max(row)) for step, row in rows]


def draw_arm(axes: Axes, arm: str, curves: Sequence[Points], number: int) -> None:
    """Draw the mean over the seeds of one arm, and the band that they span."""
    logged = [curve for curve in curves if curve]
    rows = over_seeds(logged) if logged else []
    if not rows:
        return
    seeds = f"{len(logged)} seed{'s' * (len(logged) > 1)}"
    draw_mean(axes, f"{arm} ({seeds})", rows, number, has_band=len(logged) > 1)


def draw_mean(
    axes: Axes,
    label: str,
    rows: Sequence[tuple[float, float, float, float]],
    number: int,
    *,
    has_band: bool = True,
) -> None:
    """Draw a line of (x, mean, minimum, maximum) over seeds in style `number`, and its band."""
    steps, mean, low, high = zip(*rows, strict=True)
    (colour, dash, marker), interval = style(number), -(-len(rows) // MAX_MARKERS)
    if has_band:
        axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(
        steps,
        mean,
        color=colour,
        linestyle=dash,
        marker=marker,
        markersize=3.5,
        markevery=(number % interval, interval),  # so that no marker hides that of an equal line
        linewidth=1.6,
        label=label,
    )


def scale_by_two(axes: Axes) -> None:
    """Give the x axis a logarithmic scale with plain numbers at the powers of 2."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def draw_sampling(axes: Axes, sampled: Sequence[Record]) -> None:
    """Draw Maj@K and Pass@K before and after RL for one benchmark, averaged over the seeds."""
    for colour, (name, label) in zip(COLOURS, SAMPLED.items(), strict=False):
        for dash, marker, moment in zip(("--", "-"), ("o", "s"), MOMENTS, strict=True):
            curves = [record[moment] for record in sampled if moment in record]
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
    scale_by_two(axes)
    if not axes.lines:
        axes.text(0.5, 0.5, "not sampled", ha="center", transform=axes.transAxes)


def sampled_mean(
    curves: Sequence[Record], name: str
) -> tuple[list[int], list[float], list[float], list[float]]:
    """Return the K, and at each K the mean of a measure over seeds and its 95 % interval.

    Raises:
        BadValue: the seeds were sampled at different K.
    """
    ks = list(curves[0]["k"])
    if any(list(curve["k"]) != ks for curve in curves):
        sampled = [list(curve["k"]) for curve in curves]
        raise BadValue(f"seeds sampled at K = {sampled}: expected the same K for all seeds")
    parts = [[curve[f"{name}{end}"] for curve in curves] for end in ("", "_low", "_high")]
    shared = same_problems(curves)
    intervals = [
        mean_interval(*([curve[position] for curve in part] for part in parts), shared=shared)
        for position in range(len(ks))
    ]
    middle, low, high = (list(column) for column in zip(*intervals, strict=True))
    return ks, middle, low, high


def finish(figure: Figure, panels: Sequence[Axes]) -> None:
    """Add one legend for all panels below the figure, name the line ends and lay all out.

    Ends of more than `NAMED` lines have no names, and the figure is higher by its longer legend.
    The figure keeps no layout engine: it would move elements at every drawing, and the bytes would
    differ.
    """
    labelled: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label, handle)
    is_crowded = len(labelled) > NAMED
    columns = 3 if is_crowded else min(4, len(labelled))  # 4 fit the width, 3 of long names
    if labelled:
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=columns)
    if is_crowded:
        figure.set_figheight(figure.get_figheight() + ROW * ceil(len(labelled) / columns))
    layout = ConstrainedLayoutEngine()
    layout.execute(figure)
    for axes in () if is_crowded else panels:
        name_ends(axes, axes.get_position().height * figure.get_figheight() * 72)
    layout.execute(figure)


def name_ends(axes: Axes, height: float) -> None:
    """Write the label of every line to the right of its last point.

    A suffix in parentheses and a final " RL" are left out of the name. Names of lines that end at
    the same x are spread vertically so that they do not overlap. Names of other lines may.

    Args:
        axes: the panel; each of its lines has at least one point.
        height: height of the panel in points.
    """
    to_panel = axes.transData + axes.transAxes.inverted()
    ends = {line: to_panel.transform(end_of(line)) for line in axes.lines}
    for right in dict.fromkeys(round(x, 3) for x, _ in ends.values()):
        lines = [line for line, (x, _) in ends.items() if round(x, 3) == right]
        lines.sort(key=lambda line: ends[line][1])
        places = spread_places([ends[line][1] for line in lines], LINE_SPACING * NAME_SIZE / height)
        for line, place in zip(lines, places, strict=True):
            name_end(axes, line, (right + 0.025, place))


def end_of(line: Line2D) -> tuple[float, float]:
    """Return the last point (x, y) of a line in data coordinates."""
    x, y = asarray(line.get_xydata())[-1]
    return x, y


def name_end(axes: Axes, line: Line2D, place: tuple[float, float]) -> None:
    """Write the name of a line at a place of its panel, in axes fractions."""
    axes.annotate(
        str(line.get_label()).partition(" (")[0].removesuffix(" RL"),
        end_of(line),
        place,
        textcoords="axes fraction",
        va="center",
        fontsize=NAME_SIZE,
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


def spread_places(ends: Sequence[float], gap: float) -> list[float]:
    """Return increasing places from 0 to 1 with a minimum gap, each as near to its end as possible.

    Places for which there is no room lie below 0.
    """
    rising = push_up(ends, gap)
    falling = [-place for place in push_up([-end for end in reversed(ends)], gap)][::-1]
    middle = [(above + below) / 2 for above, below in zip(rising, falling, strict=True)]
    up = push_up(middle, gap, lowest=0.0)
    down = push_up([-place for place in reversed(up)], gap, lowest=-1.0)
    return [round(-place, 4) for place in reversed(down)]


def push_up(places: Sequence[float], gap: float, lowest: float = -inf) -> list[float]:
    """Return increasing places, each moved up until it is a gap above the previous one."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap if moved else lowest))
    return moved
