"""The table of gains by form: what an arm won in answers of the starting model's form, and not."""

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
    """One table, if any of the runs at a scale has its gains split by form."""
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
    """The suites whose gains are split, as the paper has them."""
    rows = [(run, form_name(row)) for run in runs for row in run["scores"]]
    return list(dict.fromkeys(name for run, name in rows if name in run.get("forms", {})))


def section(arms: dict[str, list[RunRecord]], name: str) -> Section:
    """The arms on one suite."""
    having = {arm: [r for r in runs if name in r.get("forms", {})] for arm, runs in arms.items()}
    rows = tuple(Row((arm,), cells(runs, name)) for arm, runs in having.items() if runs)
    suite, _, mode = name.partition(" ")
    return Section(f"{title_of(suite)} {mode}".strip(), rows)


def cells(runs: Sequence[RunRecord], name: str) -> tuple[Cell, ...]:
    """The gain of an arm on one suite, its two parts, and how many answers changed their form."""
    shares = [share(split) for split in splits_of(runs, name)]
    return (
        gain_cell(runs, name),
        gain_cell(runs, name, lambda split: split["unchanged"]),
        gain_cell(runs, name, lambda split: split["changed"]),
        cell(runs, name, shares, least=0.0),
    )


def splits_of(runs: Sequence[RunRecord], name: str) -> list[FormSplit]:
    """The split of every run on one suite."""
    return [run.get("forms", {})[name] for run in runs]


def gain_cell(
    runs: Sequence[RunRecord], name: str, part: Callable[[FormSplit], FormPart] | None = None
) -> Cell:
    """The gain over seeds on one suite, or that of a part of the answers."""
    of = part or whole
    found = [gain(of(split), whole(split)["n"]) for split in splits_of(runs, name)]
    return cell(runs, name, found, least=-100.0)


def whole(split: FormSplit) -> FormPart:
    """Both parts of a split together."""
    one, other = split["changed"], split["unchanged"]
    return {
        "n": one["n"] + other["n"],
        "won": one["won"] + other["won"],
        "lost": one["lost"] + other["lost"],
    }


def gain(part: FormPart, n: int) -> Estimated:
    """What answers won, in points of the accuracy on all n problems, with its interval."""
    low, high = agresti_min(part["won"], part["lost"], n)
    return 100 * (part["won"] - part["lost"]) / n, 100 * low, 100 * high


def share(split: FormSplit) -> Estimated:
    """How many answers changed their form, in percent, with its interval."""
    changed, n = split["changed"]["n"], whole(split)["n"]
    low, high = wilson(changed, n)
    return 100 * changed / n, 100 * low, 100 * high


def cell(runs: Sequence[RunRecord], name: str, found: Sequence[Estimated], *, least: float) -> Cell:
    """The mean over seeds of a number that each seed has with its interval."""
    rows = [next(row for row in run["scores"] if form_name(row) == name) for run in runs]
    values, lows, highs = zip(*found, strict=True)
    mean, low, high = mean_interval(
        values, lows, highs, shared=same_problems(rows), lower_bound=least
    )
    return Cell(mean, low=low, high=high, n=rows[0]["n"], seeds=len(found))
