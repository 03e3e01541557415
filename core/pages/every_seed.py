"""The table of the scores of each seed, beside the means over seeds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from core.families.table import find_family
from core.pages.runs import (
    MODES,
    Measured,
    by_arm,
    measured_in,
    modes_of,
    runs_table,
    score_of,
    starts_of,
)
from core.pages.stored import record_path, samples_path
from core.paper import Paper
from core.records.schema import RunRecord
from eval.tables.seed_intervals import mean_cell
from eval.tables.table import Block, Cell, Row, Section, Table

NOTE = "One run each, with a 95 % interval for the drawing of the problems alone."


def seeds_table(paper: Paper, runs: Sequence[RunRecord], scale: str, folder: Path) -> Table:
    """Return the table of all runs at a scale, with links from `folder` to records and samples."""
    means = runs_table(paper, [dict(run) for run in runs], scale)
    measured = measured_in(runs)
    return replace(
        means,
        name=f"{means.name}-seeds",
        caption=f"{means.caption}, seed by seed",
        heads=("Model", "Seed"),
        blocks=tuple(
            Block(MODES.get(mode, mode), tuple(sections(paper, runs, measured, mode, folder)))
            for mode in modes_of(runs)
        ),
        notes=(NOTE,),
    )


def sections(
    paper: Paper, runs: Sequence[RunRecord], measured: Sequence[Measured], mode: str, folder: Path
) -> Iterator[Section]:
    """Yield the rows of the starting models, then those of the trained models.

    A family that trains nothing has scores in one section.
    """
    family = find_family(paper.family)
    start_models = dict.fromkeys(run["start_model"] or "start" for run in runs)
    before = [
        Row((name, seeds), cells(run, "start_scores", measured, mode, folder))
        for name in start_models
        for seeds, run in labelled_starts(name, runs)
    ]
    after = [
        Row(
            (f"+ {arm}" if family.trains else arm, str(run["seed"])),
            cells(run, "scores", measured, mode, folder),
            path=record_path(run, folder),
        )
        for arm, arm_runs in by_arm(paper, runs).items()
        for run in arm_runs
    ]
    for title, rows in (("Before", before), ("After", after)):
        if scored := [row for row in rows if any(row.cells)]:
            yield Section(
                f"{title} {family.trained_by}" if family.trains else "Ours", tuple(scored)
            )


def labelled_starts(name: str, runs: Sequence[RunRecord]) -> Iterator[tuple[str, RunRecord]]:
    """Yield a run of each seed that began with a model, after the seed or "all" seeds."""
    starts = starts_of(name, runs)
    several = len({run["seed"] for run in runs}) > len(starts) == 1
    yield from (("all" if several else str(run["seed"]), run) for run in starts)


def cells(
    run: RunRecord, field: str, measured: Sequence[Measured], mode: str, folder: Path
) -> tuple[Cell | None, ...]:
    """Return a cell for each measured benchmark and metric; None if the run has no score."""
    scores = [score_of(run, field, (name, mode, metric)) for name, metric in measured]
    return tuple(
        score_row
        and replace(mean_cell([score_row]), path=samples_path(run, score_row["digest"], folder))
        for score_row in scores
    )
