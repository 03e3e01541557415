"""How much of what a run won lies in answers of another form than its starting model's."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeAlias, cast

from core.records.agreement import agree
from core.records.run_samples import read_run_samples
from core.records.schema import FormSplit, RunRecord, place_of
from eval.samples.forms import split_by_form
from eval.samples.store import Sample

Row: TypeAlias = Mapping[str, Any]  # Any: the fields of a score, of several types


def form_splits(
    before: Iterable[Row], after: Iterable[Row], read: Callable[[str], Sequence[Sample]]
) -> dict[str, FormSplit]:
    """Return the split of every suite that both models answered greedily, once a problem.

    `read` returns the samples of a digest.
    """
    start = {question(row): row["digest"] for row in before if greedy(row)}
    pairs = {
        form_name(row): (start[question(row)], row["digest"])
        for row in after
        if greedy(row) and question(row) in start
    }
    return {name: split_of(*map(read, digests)) for name, digests in pairs.items()}


def split_of(before: Sequence[Sample], after: Sequence[Sample]) -> FormSplit:
    """Return the split between the samples of two models."""
    return cast(FormSplit, asdict(split_by_form(before, after)))


def greedy(row: Row) -> bool:
    """Whether a score is of the likeliest answer to each problem, one."""
    return row["metric"] == "top1" and row["samples"] == 1 and not row.get("temperature")


def question(row: Row) -> tuple[str, str, int | None]:
    """Which problems were asked, and how."""
    return row["benchmark"], row["mode"], row.get("draw")


def form_name(row: Row) -> str:
    """The suite, and how it is answered if not step by step."""
    return row["benchmark"] if row["mode"] == "cot" else f"{row['benchmark']} {row['mode']}"


def form_problems(run: RunRecord) -> Iterator[str]:
    """Splits of a run that its stored samples do not give; of an older record, which has none."""
    if "forms" not in run:
        return
    given = form_splits(run["start_scores"], run["scores"], partial(read_run_samples, run))
    for name in sorted(given.keys() | run["forms"].keys()):
        said, found = run["forms"].get(name), given.get(name)
        if not agree(said, found):
            yield f"{place_of(run)}, {name}: forms are {said}, its samples give {found}"
