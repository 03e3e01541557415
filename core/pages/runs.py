"""The table of a paper's runs: the starting model, and what each arm made of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from core.families.table import find_family
from core.paper import Layout, Paper
from core.records.schema import Record, RunRecord, ScoreRow, runs_of
from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark_or_none
from eval.tables.seed_intervals import LIMITED, mean_cell
from eval.tables.table import Block, Cell, Column, Row, Section, Table, disambiguate_columns

Measured: TypeAlias = tuple[str, str]  # benchmark and metric
ByArm: TypeAlias = Mapping[str, Sequence[RunRecord]]

HEADS = ("Model", "Size")
MODES = {
    "cot": "Chain-of-thought reasoning",
    "tir": "Tool-integrated reasoning",
    "few-shot": "Few-shot prompts",
    "pal": "Programs",
}
SEEDS_NOTE = (
    "Ours: mean over seeds with a 95 % interval for the drawing of the problems and of the seeds; "
    "n: problems, times seeds if there are several; not ranked."
)
LIMITED_NOTE = "scored on a part of the test set, n says how many problems; not ranked."


def layout_of(paper: Paper, of: str, caption: str) -> Layout:
    """How the paper lays out the table of a passage or of a scale; plainly if it does not say."""
    words = "".join(c if c.isalnum() else " " for c in of.lower()).split()
    plain = Layout(of=of, name="-".join([paper.slug, *words]), caption=caption)
    return next((layout for layout in paper.layouts if layout.of == of), plain)


def title_of(benchmark: str) -> str:
    """The title of a benchmark that is known here, else its name as it is."""
    known = find_benchmark_or_none(benchmark)
    return known.title if known else benchmark


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
    how = ", ".join(["greedy", *metrics] if list(metrics) == ["top1"] else metrics)
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
        notes=(SEEDS_NOTE,),
    )


def scores_in(runs: Iterable[RunRecord]) -> list[ScoreRow]:
    """All scores of runs and of the models that they began with."""
    return [row for run in runs for row in (*run["start_scores"], *run["scores"])]


def measured_in(runs: Iterable[RunRecord]) -> list[Measured]:
    """What was measured, each once, in the order of the columns of a table."""
    return list(dict.fromkeys((row["benchmark"], row["metric"]) for row in scores_in(runs)))


def modes_of(runs: Iterable[RunRecord]) -> list[str]:
    """The ways in which was asked."""
    return list(dict.fromkeys(row["mode"] for row in scores_in(runs)))


def by_arm(paper: Paper, runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs of every arm, in the paper's order; of an arm that it has no more last."""
    order = [*paper.arms, *(run["arm"] for run in runs)]
    seeds = sorted(runs, key=lambda run: run["seed"])
    found = {arm: [run for run in seeds if run["arm"] == arm] for arm in order}
    return {arm: some for arm, some in found.items() if some}


def our_sections(
    paper: Paper, arms: ByArm, measured: Sequence[Measured], mode: str
) -> tuple[Section, ...]:
    """Build the rows of the starting model and of every arm, asked in one mode."""
    runs = [run for found in arms.values() for run in found]
    size = next((run["size"] for run in runs if run["size"]), None) or "-"
    began = dict.fromkeys(run["start_model"] or "start" for run in runs)
    starts = {name: starts_of(name, runs) for name in began}
    before = [
        Row((name, size), cells(found, "start_scores", measured, mode))
        for name, found in starts.items()
    ]
    family = find_family(paper.family)
    after = [
        Row(
            (f"+ {arm}" if family.trains else ", ".join(starts), size),
            cells(found, "scores", measured, mode),
        )
        for arm, found in arms.items()
    ]
    work = family.trained_by
    named = (
        (f"Ours: before {work}", before),
        (f"Ours: after {work}" if family.trains else "Ours", after),
    )
    return tuple(
        Section(title, tuple(rows))
        for title, rows in named
        if any(cell for row in rows for cell in row.cells)
    )


def starts_of(name: str, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """A run of every seed that began with a model; one if all began with the same checkpoint."""
    began = {run["seed"]: run for run in runs if (run["start_model"] or "start") == name}
    first, *others = began.values()
    same = all(run["start_scores"] == first["start_scores"] for run in others)
    return [first] if same else [first, *others]


def cells(
    runs: Sequence[RunRecord], when: str, measured: Sequence[Measured], mode: str
) -> tuple[Cell | None, ...]:
    """Build one cell for all that is measured, over the seeds; None where no run has a score."""
    found: list[Cell | None] = []
    for benchmark, metric in measured:
        wanted = (benchmark, mode, metric)
        scores = [one for run in runs if (one := score_of(run, when, wanted)) is not None]
        if scores and len(scores) != len(runs):
            raise BadValue(
                f"{benchmark}, {mode}: {len(scores)} of {len(runs)} runs have {metric} in {when}"
            )
        found.append(mean_cell(scores) if scores else None)
    return tuple(found)


def score_of(run: RunRecord, when: str, wanted: tuple[str, str, str]) -> ScoreRow | None:
    """A run's score by benchmark, mode and metric; benchmarks with one twin share its samples.

    Raises:
        BadValue: there are two scores, from different samples.
    """
    rows = run["start_scores"] if when == "start_scores" else run["scores"]
    found = [row for row in rows if (row["benchmark"], row["mode"], row["metric"]) == wanted]
    if len({(row["digest"], row["value"]) for row in found}) > 1:
        raise BadValue(f"{', '.join(wanted)}: {len(found)} different scores in {when} of one run")
    return found[0] if found else None


def newest(records: Iterable[Record], paper: Paper, scale: str) -> list[RunRecord]:
    """Choose the runs of a paper at one scale, the last created of every arm and seed."""
    runs = [run for run in runs_of(records, scale) if run["paper"] == paper.slug]
    runs.sort(key=lambda run: run["created"])
    latest = {(run["arm"], run["seed"]): run for run in runs}
    return sorted(latest.values(), key=lambda run: run["seed"])


def limited_mark(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The mark and its meaning if any score covers only a part of its test set."""
    scores = [score for run in runs for score in (*run["start_scores"], *run["scores"])]
    return {LIMITED: LIMITED_NOTE} if any(score["limited"] for score in scores) else {}
