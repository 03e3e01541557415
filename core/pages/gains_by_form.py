"""The table of gains by form: in answers of the starting model's form, and of another form."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from core.pages.runs import by_arm, title_of
from core.paper import Paper
from core.records.form_splits import form_name
from core.records.schema import FormPart, FormSplit, RunRecord
from eval.stats.estimates import agresti_min, wilson
from eval.tables.seed_intervals import mean_interval, same_problems
from eval.tables.table import Block, Cell, Column, Row, Section, Table

Estimated: TypeAlias = tuple[float, float, float]  # a number and its interval

COLUMNS = (
    Column("Gain", unit="points"),
    Column("of it in answers of the same form", unit="points"),
    Column("in answers of another form", unit="points"),
    Column("Answers of another form", unit="%"),
)
NOTE = (
    "The form of an answer is its number of lines, how many of them do a line again, whether it is "
    "a program, and whether it boxes its answer; another form is another than the starting model's "
    "to the same problem. Mean over seeds with a 95 % interval; n: problems, times seeds."
)


def forms_tables(paper: Paper, runs: Sequence[RunRecord], scale: str) -> Iterator[Table]:
    """Yield one table if any run has its gains split by form, else nothing."""
    split = [run for run in runs if run.get("forms")]
    names = suites_of(split)
    if not names:
        return
    arms = by_arm(paper, split)
    yield Table(
        name=f"{paper.slug}-forms",
        caption=f"{paper.slug}: greedy gain over the starting model, by form ({scale} scale)",
        scale=scale,
        heads=("Arm",),
        columns=COLUMNS,
        blocks=(Block("", tuple(section(arms, name) for name in names)),),
        notes=(NOTE,),
    )


def suites_of(runs: Sequence[RunRecord]) -> list[str]:
    """Return the suites whose gains are split, in the order of the scores."""
    rows = [(run, form_name(row)) for run in runs for row in run["scores"]]
    return list(dict.fromkeys(name for run, name in rows if name in run.get("forms", {})))


def section(arms: dict[str, list[RunRecord]], name: str) -> Section:
    """Return a row for each arm that has its gain on a suite split."""
    having = {arm: [r for r in runs if name in r.get("forms", {})] for arm, runs in arms.items()}
    rows = tuple(Row((arm,), cells(runs, name)) for arm, runs in having.items() if runs)
    suite, _, mode = name.partition(" ")
    return Section(f"{title_of(suite)} {mode}".strip(), rows)


def cells(runs: Sequence[RunRecord], name: str) -> tuple[Cell, ...]:
    """Return the gain of an arm on a suite, its two parts, and the share of changed forms."""
    shares = [share(split) for split in splits_of(runs, name)]
    return (
        gain_cell(runs, name),
        gain_cell(runs, name, lambda split: split["unchanged"]),
        gain_cell(runs, name, lambda split: split["changed"]),
        cell(runs, name, shares, lower_bound=0.0),
    )


def splits_of(runs: Sequence[RunRecord], name: str) -> list[FormSplit]:
    """Return the split of each run on a suite."""
    return [run.get("forms", {})[name] for run in runs]


def gain_cell(
    runs: Sequence[RunRecord], name: str, part: Callable[[FormSplit], FormPart] | None = None
) -> Cell:
    """Return the mean gain over seeds on a suite, of all answers or of a part of them."""
    part_of = part or both_parts
    gains = [gain(part_of(split), both_parts(split)["n"]) for split in splits_of(runs, name)]
    return cell(runs, name, gains, lower_bound=-100.0)


def both_parts(split: FormSplit) -> FormPart:
    """Return the sum of both parts of a split."""
    changed, unchanged = split["changed"], split["unchanged"]
    return {
        "n": changed["n"] + unchanged["n"],
        "won": changed["won"] + unchanged["won"],
        "lost": changed["lost"] + unchanged["lost"],
    }


def gain(part: FormPart, n: int) -> Estimated:
    """Return the gain of a part in points of accuracy on all n problems, with its interval."""
    low, high = agresti_min(part["won"], part["lost"], n)
    return 100 * (part["won"] - part["lost"]) / n, 100 * low, 100 * high


def share(split: FormSplit) -> Estimated:
    """Return the percentage of answers that changed their form, with its interval."""
    changed, n = split["changed"]["n"], both_parts(split)["n"]
    low, high = wilson(changed, n)
    return 100 * changed / n, 100 * low, 100 * high


def cell(
    runs: Sequence[RunRecord], name: str, estimates: Sequence[Estimated], *, lower_bound: float
) -> Cell:
    """Return the cell of the mean over seeds of an estimate, with the interval of the mean."""
    rows = [next(row for row in run["scores"] if form_name(row) == name) for run in runs]
    values, lows, highs = zip(*estimates, strict=True)
    mean, low, high = mean_interval(
        values, lows, highs, shared=same_problems(rows), lower_bound=lower_bound
    )
    return Cell(mean, low=low, high=high, n=rows[0]["n"], seeds=len(estimates))
