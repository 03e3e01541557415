"""Data sets whose rows are computed: those of the pocket world and of the nano worlds."""

from collections.abc import Mapping
from functools import partial

from core.data.data_set import GRADED, PAIRS, PREFERENCES, TEXT, WORKED, DataSet
from core.data.nano_rows import demonstration_rows, graded_rows, pair_rows, text_rows
from core.data.pair_columns import GRADE, MARGIN
from core.data.pocket_demonstrations import pocket_demonstrations
from core.data.pocket_pairs import revised_pairs
from core.data.sources import Generated, Problems
from eval.nano import NANO_VERSION
from eval.nano.graded_pairs import held_out_pairs, training_pairs
from eval.nano.random_tables import COUNTS, pair_answers
from eval.nano.splits import SIZES, held_out_answers
from eval.nano.task import Task
from eval.pocket import GENERATOR_VERSION
from eval.pocket.suites import SUITES

PAIRS_TO_LEARN, PAIRS_TO_JUDGE = 4_800, 601  # of the nano task `digits`
TEXTS_TO_LEARN, TEXTS_TO_MATCH = 20_000, 1_000  # of the nano task `canvas`
POCKET = ("pocket-gsm8k", "pocket-math")  # English only: the Chinese suites stay unseen
REVISED = 1200  # problems of each benchmark whose solutions are revised to train on


def pocket(
    name: str, benchmarks: tuple[str, ...], style: str | None = None, first: int | None = None
) -> DataSet:
    """Return a data set of pocket-world problems, with held-out problems.

    Args:
        name: its name.
        benchmarks: the benchmarks that the problems come from.
        style: style of solutions to include as completions; None includes none.
        first: number of problems of each benchmark; None takes all.
    """
    source = Problems(benchmarks, holds_out=True, style=style, first=first)
    columns = WORKED if style is None else (*WORKED, "completion")
    return DataSet(name=name, columns=columns, n=(first or 6000) * len(benchmarks), source=source)


def pocket_demonstration_set(name: str, styles: tuple[str, ...]) -> DataSet:
    """Return demonstrations of all problems of the pocket world, with the mistakes of each seed."""
    source = Generated(
        partial(pocket_demonstrations, tuple(SUITES), styles),
        f"pocket {GENERATOR_VERSION[:16]}",
        "pocket-math",
    )
    return DataSet(name=name, n=4 * 6000, source=source)


def revised_pair_set(name: str, n: int) -> DataSet:
    """Return `n` pairs of a worked solution and a revision of it, with the mistakes of the seed.

    Training pairs are of the first `REVISED` problems of each benchmark, held-out pairs of all
    validation problems.
    """
    make = partial(revised_pairs, POCKET, "train", REVISED)
    hold_out = partial(revised_pairs, POCKET, "valid", None)
    text = f"revisions of {REVISED} problems, pocket {GENERATOR_VERSION[:16]}"
    source = Generated(make, text, hold_out=hold_out)
    return DataSet(name=name, columns=(*WORKED, *PAIRS), n=n, source=source)


def nano(task: Task) -> tuple[DataSet, ...]:
    """Return the training problems of a nano task, and each kind of its demonstrations."""
    columns, source = (*GRADED, "answers"), Problems((task.name,), True)
    return (
        DataSet(name=task.name, columns=columns, n=SIZES["train"], source=source),
        *(nano_demonstrations(task, kind) for kind in task.demonstrations),
    )


def nano_demonstrations(task: Task, kind: str) -> DataSet:
    """Return one kind of a nano task's demonstrations, and its answers to held-out problems."""
    count = task.demonstrations[kind].count
    source = Generated(
        partial(demonstration_rows, task.name, kind),
        f"{count} and answers to held-out problems, nano {NANO_VERSION}",
        task.name,
        partial(held_out_answers, task.name, kind),
    )
    return DataSet(name=f"{task.name}-{kind}", n=count, source=source)


def graded_pair_set(name: str, margins: Mapping[int, float] | None = None) -> DataSet:
    """Return pairs of the nano task `digits` with their grades, and with the margin of each grade.

    Held-out pairs are those of the seed; without `margins` there is no column of margins.
    """
    draws = (partial(training_pairs, PAIRS_TO_LEARN), partial(held_out_pairs, PAIRS_TO_JUDGE))
    make, hold_out = (partial(graded_rows, draw, margins) for draw in draws)
    text = f"{PAIRS_TO_LEARN} pairs, margins {margins}, nano {NANO_VERSION}"
    source = Generated(make, text, hold_out=hold_out)
    columns = (*PREFERENCES, GRADE, *((MARGIN,) if margins else ()))
    return DataSet(name=name, columns=columns, n=PAIRS_TO_LEARN, source=source)


def pair_table(table: str) -> DataSet:
    """Return a table of random pairs, all of which are trained on and held out."""
    source = Generated(
        partial(pair_rows, table),
        f"tables, nano {NANO_VERSION}",
        table,
        partial(pair_answers, table),
    )
    return DataSet(name=table, n=COUNTS[table], source=source)


def canvas_texts(name: str) -> DataSet:
    """Return texts of the nano task `canvas`, and held-out texts of the same chain."""
    make, hold_out = (
        partial(text_rows, split, count)
        for split, count in (("train", TEXTS_TO_LEARN), ("valid", TEXTS_TO_MATCH))
    )
    source = Generated(make, f"canvas, nano {NANO_VERSION}", hold_out=hold_out)
    return DataSet(name=name, columns=TEXT, n=TEXTS_TO_LEARN, source=source)
