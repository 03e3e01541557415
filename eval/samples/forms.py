"""Splits of a gain: answers whose form changed, and answers whose form did not."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.errors import BadValue
from eval.pocket.solver import REDO
from eval.samples.store import Sample, Sealed


def form_of(output: str) -> tuple[int, int, bool, bool]:
    """Return numbers of lines and of redone lines, and whether there are a program and a box."""
    lines = output.splitlines()
    redone = sum(line.startswith(tuple(REDO.values())) for line in lines)
    return len(lines), redone, "```" in output, "\\boxed" in output


def form_in(sample: Sample) -> list[int]:
    """Return the form of a sample's whole output; a sealed sample stores its form."""
    return sample.form if isinstance(sample, Sealed) else [*map(int, form_of(sample.output))]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Counts of answers of one kind: all, those that became right, those that became wrong."""

    n: int
    won: int
    lost: int


@dataclass(frozen=True, kw_only=True)
class Split:
    """Counts of the answers to the same problems, by whether their form changed."""

    changed: Part
    unchanged: Part


def split_by_form(before: Sequence[Sample], after: Sequence[Sample]) -> Split:
    """Return counts of answers that became right or wrong, by whether `form_of` changed.

    Raises:
        BadValue: the samples are not one answer to each of the same problems.
    """
    old = {sample.id: sample for sample in before}
    if not len(old) == len(before) == len(after) or old.keys() != {s.id for s in after}:
        raise BadValue(
            f"{len(before)} answers before and {len(after)} after: expected one to each of the "
            "same problems"
        )
    correctness: dict[bool, list[tuple[bool, bool]]] = {True: [], False: []}
    for new in after:
        was = old[new.id]
        has_changed = form_in(was) != form_in(new)
        correctness[has_changed].append((was.correct is True, new.correct is True))
    return Split(
        changed=count_changes(correctness[True]), unchanged=count_changes(correctness[False])
    )


def count_changes(pairs: Sequence[tuple[bool, bool]]) -> Part:
    """Count pairs of whether an answer was right before and whether it is right after."""
    won = sum(is_right and not was_right for was_right, is_right in pairs)
    lost = sum(was_right and not is_right for was_right, is_right in pairs)
    return Part(n=len(pairs), won=won, lost=lost)
