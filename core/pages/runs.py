"""The table of a paper's runs: the scores of the starting model and of each arm."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from core.families.table import find_family
from core.paper import Layout, Paper
from core.records.metric_names import metric_names
from core.records.schema import Record, RunRecord, ScoreRow, runs_of
from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark_or_none
from eval.tables.seed_intervals import LIMITED, mean_cell
from eval.tables.table import Block, Cell, Column, Row, Section, Table, disambiguate_columns

Measured: TypeAlias = tuple[str, str]  # benchmark and name of the metric
ByArm: TypeAlias = Mapping[str, Sequence[RunRecord]]

HEADS = ("Model", "Size")
MODES = {
    "cot": "Chain-of-thought reasoning",
    "direct": "Direct answers",
    "tir": "Tool-integrated reasoning",
    "untooled": "Programs that are not run",
    "few-shot": "Few-shot prompts",
    "pal": "Programs",
}
SEEDS_NOTE = (
    "Ours: mean over seeds with a 95 % interval for the drawing of the problems and of the seeds; "
    "n: problems, times seeds if there are several; not ranked."
)
LIMITED_NOTE = "scored on a part of the test set, n says how many problems; not ranked."


def layout_of(paper: Paper, passage: str, caption: str) -> Layout:
    """Return the paper's layout of the table of a passage or a scale, or a plain one."""
    name_parts = "".join(c if c.isalnum() else " " for c in passage.lower()).split()
    plain = Layout(of=passage, name="-".join([paper.slug, *name_parts]), caption=caption)
    return next((layout for layout in paper.layouts if layout.of == passage), plain)


def title_of(benchmark: str) -> str:
    """Return the title of a benchmark, or the name itself if it is not known here."""
    known_benchmark = find_benchmark_or_none(benchmark)
    return known_benchmark.title if known_benchmark else benchmark


def runs_table(paper: Paper, records: Iterable[Record], scale: str) -> Table:
    """Lay out what a paper's runs at one scale scored, a block for each way of asking.

    Raises:
        BadValue: no run at this scale, or a run without a score of a suite that another has.
    """
    records = list(records)
    runs = newest(records, paper, scale)
    if not runs:
        raise BadValue(f"no run of {paper.slug} at {scale} scale")
    arms, measured = by_arm(paper, runs), measured_in(runs)
    metrics = dict.fromkeys(metric for _, metric in measured)
    sampled = sampled_once(runs)
    is_greedy = list(metrics) == ["top1"] and len(sampled) < len(measured)
    how = ", ".join(["greedy", *metrics] if is_greedy else metrics)
    layout = layout_of(paper, scale, f"{paper.slug}: accuracy in %")
    family = find_family(paper.family)
    compared = f" before and after {family.trained_by}" if family.trains else ""
    return Table(
        name=layout.name,
        caption=f"{layout.caption}{compared} ({scale} scale, {how})",
        scale=scale,
        heads=HEADS,
        columns=disambiguate_columns(
            [Column(title_of(name), metric=metric) for name, metric in measured]
        ),
        blocks=tuple(
            Block(MODES.get(mode, mode), our_sections(paper, arms, measured, mode))
            for mode in modes_of(runs)
        ),
        marks=limited_mark(runs),
        notes=(
            SEEDS_NOTE,
            *(f"{title_of(n)}: one answer sampled at temperature {t:g}." for n, t in sampled),
        ),
    )


def sampled_once(runs: Iterable[RunRecord]) -> list[tuple[str, float]]:
    """Return the benchmarks whose one answer to each problem was sampled, with the temperature."""
    rows = [row for row in scores_in(runs) if row["metric"] == "top1" and row.get("temperature")]
    return list(dict.fromkeys((row["benchmark"], row.get("temperature", 0.0)) for row in rows))


def scores_in(runs: Iterable[RunRecord]) -> list[ScoreRow]:
    """Return all scores of runs and of their starting models."""
    return [row for run in runs for row in (*run["start_scores"], *run["scores"])]


def measured_in(runs: Iterable[RunRecord]) -> list[Measured]:
    """Return the measured benchmarks and metrics, each pair once, in the order of the columns."""
    named = (
        (row["benchmark"], metric)
        for run in runs
        for rows in (run["start_scores"], run["scores"])
        for row, metric in zip(rows, metric_names(rows), strict=True)
    )
    return list(dict.fromkeys(named))


def modes_of(runs: Iterable[RunRecord]) -> list[str]:
    """Return the modes of answering in which the runs were scored."""
    return list(dict.fromkeys(row["mode"] for row in scores_in(runs)))


def by_arm(paper: Paper, runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return the runs by arm, in the paper's order; arms that the paper no longer has come last."""
    order = [*paper.arms, *(run["arm"] for run in runs)]
    seeds = sorted(runs, key=lambda run: run["seed"])
    grouped = {arm: [run for run in seeds if run["arm"] == arm] for arm in order}
    return {arm: arm_runs for arm, arm_runs in grouped.items() if arm_runs}


def our_sections(
    paper: Paper, arms: ByArm, measured: Sequence[Measured], mode: str
) -> tuple[Section, ...]:
    """Build the rows of the starting model and of every arm, asked in one mode."""
    runs = [run for row_runs in arms.values() for run in row_runs]
    start_models = dict.fromkeys(run["start_model"] or "start" for run in runs)
    starts = {name: starts_of(name, runs) for name in start_models}
    before = [
        Row((name, size_of(row_runs)), cells(row_runs, "start_scores", measured, mode))
        for name, row_runs in starts.items()
    ]
    family = find_family(paper.family)
    after = [
        Row(
            (f"+ {arm}" if family.trains else ", ".join(starts), size_of(row_runs)),
            cells(row_runs, "scores", measured, mode),
        )
        for arm, row_runs in arms.items()
    ]
    work = family.trained_by
    titled_rows = (
        (f"Ours: before {work}", before),
        (f"Ours: after {work}" if family.trains else "Ours", after),
    )
    return tuple(
        Section(title, tuple(rows))
        for title, rows in titled_rows
        if any(cell for row in rows for cell in row.cells)
    )


def size_of(runs: Iterable[RunRecord]) -> str:
    """Return the size of the model of runs, a dash if no record has one."""
    return next((run["size"] for run in runs if run["size"]), "-")


def starts_of(name: str, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return a run of each seed that began with a model; only one if all start scores agree.

    Runs whose start is not scored, as of a reward model, count if no other began with the model.
    """
    of_start = [run for run in runs if (run["start_model"] or "start") == name]
    scored = [run for run in of_start if run["start_scores"]] or of_start
    seed_runs = {run["seed"]: run for run in reversed(scored)}  # of the first arm
    first, *other_runs = (seed_runs[seed] for seed in sorted(seed_runs))
    is_shared = all(run["start_scores"] == first["start_scores"] for run in other_runs)
    return [first] if is_shared else [first, *other_runs]


def cells(
    runs: Sequence[RunRecord], field: str, measured: Sequence[Measured], mode: str
) -> tuple[Cell | None, ...]:
    """Build one cell for all that is measured, over the seeds; None where no run has a score.

    Raises:
        BadValue: only some of the runs have a score, or a run has two different ones.
    """
    row_cells: list[Cell | None] = []
    for benchmark, metric in measured:
        key = (benchmark, mode, metric)
        scores = [score_row for run in runs if (score_row := score_of(run, field, key)) is not None]
        if scores and len(scores) != len(runs):
            raise BadValue(
                f"{benchmark}, {mode}: {len(scores)} of {len(runs)} runs have {metric} in {field}"
            )
        row_cells.append(mean_cell(scores) if scores else None)
    return tuple(row_cells)


def score_of(run: RunRecord, field: str, key: tuple[str, str, str]) -> ScoreRow | None:
    """Return a run's score by benchmark, mode and name of the metric, None if it has none.

    Benchmarks with one twin share its samples, so equal scores count as one.

    Raises:
        BadValue: there are two scores from different samples.
    """
    rows = run["start_scores"] if field == "start_scores" else run["scores"]
    rows_of_key = [
        row
        for row, metric in zip(rows, metric_names(rows), strict=True)
        if (row["benchmark"], row["mode"], metric) == key
    ]
    if len({(row["digest"], row["value"]) for row in rows_of_key}) > 1:
        raise BadValue(
            f"{', '.join(key)}: {len(rows_of_key)} different scores in {field} of one run"
        )
    return rows_of_key[0] if rows_of_key else None


def newest(records: Iterable[Record], paper: Paper, scale: str) -> list[RunRecord]:
    """Choose the runs of a paper at one scale, the last created of every arm and seed."""
    runs = [run for run in runs_of(records, scale) if run["paper"] == paper.slug]
    runs.sort(key=lambda run: run["created"])
    latest = {(run["arm"], run["seed"]): run for run in runs}
    return sorted(latest.values(), key=lambda run: run["seed"])


def limited_mark(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return the mark of limited scores and its meaning; empty if no score is limited."""
    scores = [score for run in runs for score in (*run["start_scores"], *run["scores"])]
    return {LIMITED: LIMITED_NOTE} if any(score["limited"] for score in scores) else {}
