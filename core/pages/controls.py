"""The table of controls: the gain of the best fixed intervention on each starting model.

A training that gains no more than a fixed intervention may have learnt form alone.
"""

from collections.abc import Iterator, Sequence

from core.pages.gains_by_form import gain_cell, suites_of
from core.pages.runs import title_of
from core.paper import Paper
from core.records.schema import ControlsRecord, RunRecord, SuiteControls
from eval.stats.estimates import wilson
from eval.tables.table import Block, Cell, Column, Row, Section, Table

HEADS = ("Build", "Best intervention", "Recovers")


def controls_tables(
    paper: Paper, runs: Sequence[RunRecord], controls: Sequence[ControlsRecord], scale: str
) -> Iterator[Table]:
    """Yield one table if there are controls of a starting model of the main arm, else nothing."""
    main = [run for run in runs if run["main"] and run.get("forms")]
    sections = tuple(section(name, main, controls) for name in suites_of(main))
    if not any(part.rows for part in sections):
        return
    tried = max(len(suite["valid"]) - 1 for c in controls for suite in c["suites"].values())
    yield Table(
        name=f"{paper.slug}-controls",
        caption=f"{paper.slug}: the best of {tried} fixed interventions on the starting model, "
        f"greedy accuracy in % ({scale} scale)",
        scale=scale,
        heads=HEADS,
        columns=(
            Column("Start"),
            Column("with the intervention"),
            Column(f"Gain of {paper.main_arm}", unit="points"),
        ),
        blocks=(Block("", sections),),
        notes=(
            "Every answer begins with the same tokens, or does not, is a program, has more lines, "
            "lacks the last division, may be longer, or is drawn; which of these helps most is "
            f"chosen on {controls[0]['chosen_on']} problems of the valid split and valued on the "
            "test split. "
            "Recovers: its gain in percent of that of the runs that began with the build. "
            "95 % intervals; n: problems, times seeds.",
        ),
    )


def section(name: str, runs: Sequence[RunRecord], controls: Sequence[ControlsRecord]) -> Section:
    """Return a row for each build that runs scored on a suite began with."""
    rows: list[Row] = []
    for control in controls:
        own_runs = [run for run in runs if run["model"]["digest"] == control["model"]["digest"]]
        split_runs = [run for run in own_runs if name in run.get("forms", {})]
        if split_runs and name in control["suites"]:
            rows.append(row(control["model"]["name"], control["suites"][name], split_runs, name))
    return Section(title_of(name), tuple(rows))


def row(build: str, control: SuiteControls, runs: Sequence[RunRecord], name: str) -> Row:
    """Return the scores of a build without and with its best intervention, and its runs' gain."""
    gained = gain_cell(runs, name)
    helped = control["helped"] - control["start"]
    recovers = f"{100 * helped / gained.value:.0f} %" if gained.value > 0 else "-"
    cells = (
        share_cell(control["start"], control["n"]),
        share_cell(control["helped"], control["n"]),
        gained,
    )
    return Row((build, control["best"], recovers), cells)


def share_cell(percent: float, n: int) -> Cell:
    """Return the cell of a percentage of n right answers, with its Wilson interval."""
    low, high = wilson(round(percent * n / 100), n)
    return Cell(percent, low=100 * low, high=100 * high, n=n)
