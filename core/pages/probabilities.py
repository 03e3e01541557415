"""The table of what a paper's models give to texts: quantities of their probabilities."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Literal

from core.pages.runs import HEADS, SEEDS_NOTE, by_arm
from core.paper import Paper
from core.records.schema import QuantityChange, RunRecord
from eval.tables.seed_intervals import mean_interval
from eval.tables.table import Block, Cell, Column, Row, Section, Table

CAPTION = "of solutions, per token, by rows that are held out and (/training) trained on"


def quantities_tables(paper: Paper, runs: Sequence[RunRecord], scale: str) -> Iterator[Table]:
    """One table, if any of the runs at a scale measured quantities of probabilities."""
    measured = [run for run in runs if run.get("probabilities")]
    names = list(dict.fromkeys(name for run in measured for name in run.get("probabilities", {})))
    if not names:
        return
    arms = by_arm(paper, measured)
    start = next(iter(arms.values()))
    size = start[0]["size"] or "-"
    before = Row((start[0]["start_model"], size), cells(start[:1], names, "before"))
    after = [Row((f"+ {arm}", size), cells(some, names, "after")) for arm, some in arms.items()]
    sections = (Section("Ours: before", (before,)), Section("Ours: after", tuple(after)))
    yield Table(
        name=f"{paper.slug}-probabilities",
        caption=f"{paper.slug}: quantities {CAPTION} ({scale} scale)",
        scale=scale,
        heads=HEADS,
        columns=tuple(Column(name, places=3) for name in names),
        blocks=(Block("", sections),),
        notes=(SEEDS_NOTE,),
    )


def cells(
    runs: Sequence[RunRecord], names: Sequence[str], when: Literal["before", "after"]
) -> tuple[Cell | None, ...]:
    """The mean over seeds of each quantity; None where a run has none of that name."""
    return tuple(
        cell([run.get("probabilities", {})[name] for run in runs], when)
        if all(name in run.get("probabilities", {}) for run in runs)
        else None
        for name in names
    )


def cell(changes: Sequence[QuantityChange], when: Literal["before", "after"]) -> Cell:
    """One quantity over the seeds."""
    intervals = [
        one["before_interval" if when == "before" else "after_interval"] for one in changes
    ]
    lows, highs = zip(*intervals, strict=True)
    # An estimate of a divergence may lie below 0, and a loss above 100.
    mean, low, high = mean_interval(
        [one[when] for one in changes], lows, highs, shared=True, lower_bound=-inf, upper_bound=inf
    )
    return Cell(mean, low=low, high=high, n=changes[0]["n"], seeds=len(changes))
