"""Splits of a run's gains by whether an answer's form differs from the starting model's."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import cast

from core.records.agreement import agree
from core.records.answers import Fields
from core.records.run_samples import read_run_samples
from core.records.schema import FormSplit, RunRecord, place_of
from eval.samples.forms import split_by_form
from eval.samples.store import Sample


def form_splits(
    before: Iterable[Fields], after: Iterable[Fields], read: Callable[[str], Sequence[Sample]]
) -> dict[str, FormSplit]:
    """Return the split of every suite that both models answered greedily, once a problem.

    Args:
        before: Scores of the starting model.
        after: Scores of the trained model.
        read: Returns the samples of a digest.
    """
    start = {question_of(row): row["digest"] for row in before if is_greedy(row)}
    pairs = {
        form_name(row): (start[question_of(row)], row["digest"])
        for row in after
        if is_greedy(row) and question_of(row) in start
    }
    return {name: split_of(*map(read, digests)) for name, digests in pairs.items()}


def split_of(before: Sequence[Sample], after: Sequence[Sample]) -> FormSplit:
    """Return the split between the samples of two models."""
    return cast(FormSplit, asdict(split_by_form(before, after)))


def is_greedy(row: Fields) -> bool:
    """Return whether a score is computed from one greedy answer to each problem."""
    return row["metric"] == "top1" and row["samples"] == 1 and not row.get("temperature")


def question_of(row: Fields) -> tuple[str, str, int | None]:
    """Return the suite, the mode and the draw of a score, which identify its prompts."""
    return row["benchmark"], row["mode"], row.get("draw")


def form_name(row: Fields) -> str:
    """Return the name of a split: the suite, followed by the mode unless it is `cot`."""
    return row["benchmark"] if row["mode"] == "cot" else f"{row['benchmark']} {row['mode']}"


def form_problems(run: RunRecord) -> Iterator[str]:
    """Yield a line for each recorded split that differs from that of the stored samples.

    Older records have no splits and yield none.
    """
    if "forms" not in run:
        return
    splits = form_splits(run["start_scores"], run["scores"], partial(read_run_samples, run))
    for name in sorted(splits.keys() | run["forms"].keys()):
        recorded, expected = run["forms"].get(name), splits.get(name)
        if not agree(recorded, expected):
            yield f"{place_of(run)}, {name}: forms are {recorded}, its samples give {expected}"
