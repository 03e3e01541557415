"""The table of what every seed scored, beside the means over seeds."""

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
    """The scores of every run at a scale, as a page in the folder links to what they are of."""
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
    """The starting models, and what every run made of them."""
    family = find_family(paper.family)
    began = dict.fromkeys(run["start_model"] or "start" for run in runs)
    before = [
        Row((name, seeds), cells(run, "start_scores", measured, mode, folder))
        for name in began
        for seeds, run in started(name, runs)
    ]
    after = [
        Row(
            (f"+ {arm}" if family.trains else arm, str(run["seed"])),
            cells(run, "scores", measured, mode, folder),
            path=record_path(run, folder),
        )
        for arm, some in by_arm(paper, runs).items()
        for run in some
    ]
    for title, rows in (("Before", before), ("After", after)):
        if scored := [row for row in rows if any(row.cells)]:
            yield Section(f"{title} {family.trained_by}", tuple(scored))


def started(name: str, runs: Sequence[RunRecord]) -> Iterator[tuple[str, RunRecord]]:
    """The seeds that a run stands for which began with a model, and the run."""
    found = starts_of(name, runs)
    several = len({run["seed"] for run in runs}) > len(found) == 1
    yield from (("all" if several else str(run["seed"]), run) for run in found)


def cells(
    run: RunRecord, when: str, measured: Sequence[Measured], mode: str, folder: Path
) -> tuple[Cell | None, ...]:
    """A cell for all that is measured; None where the run has no score."""
    scores = [score_of(run, when, (name, mode, metric)) for name, metric in measured]
    return tuple(
        one and replace(mean_cell([one]), path=samples_path(one["digest"], folder))
        for one in scores
    )
