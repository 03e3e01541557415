"""The table of controls: what the best fixed intervention does for the models that runs began with.

What it gains is what a run may have learnt of mere form.
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
    """One table, if there are controls of a model that runs of the main arm began with."""
    main = [run for run in runs if run["main"] and run.get("forms")]
    sections = tuple(section(name, main, controls) for name in suites_of(main))
    if not any(one.rows for one in sections):
        return
    tried = max(len(found["valid"]) - 1 for one in controls for found in one["suites"].values())
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
    """The builds that runs on one suite began with."""
    rows: list[Row] = []
    for control in controls:
        began = [run for run in runs if run["model"]["digest"] == control["model"]["digest"]]
        having = [run for run in began if name in run.get("forms", {})]
        if having and name in control["suites"]:
            rows.append(row(control["model"]["name"], control["suites"][name], having, name))
    return Section(title_of(name), tuple(rows))


def row(build: str, found: SuiteControls, runs: Sequence[RunRecord], name: str) -> Row:
    """A build without and with its best intervention, beside what its runs gained."""
    gained = gain_cell(runs, name)
    helped = found["helped"] - found["start"]
    recovers = f"{100 * helped / gained.value:.0f} %" if gained.value > 0 else "-"
    cells = (scored(found["start"], found["n"]), scored(found["helped"], found["n"]), gained)
    return Row((build, found["best"], recovers), cells)


def scored(percent: float, n: int) -> Cell:
    """A share of right answers with its interval."""
    low, high = wilson(round(percent * n / 100), n)
    return Cell(percent, low=100 * low, high=100 * high, n=n)
