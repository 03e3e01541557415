"""A gain split in two: answers whose form changed, and answers whose form did not."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.errors import BadValue
from eval.pocket.solver import REDO
from eval.samples.store import Sample, Sealed


def form_of(output: str) -> tuple[int, int, bool, bool]:
    """How many lines, how many of them done again, whether it is a program, whether it boxes."""
    lines = output.splitlines()
    redone = sum(line.startswith(tuple(REDO.values())) for line in lines)
    return len(lines), redone, "```" in output, "\\boxed" in output


def form_in(sample: Sample) -> list[int]:
    """The form of an output, though its text is not kept."""
    return sample.form if isinstance(sample, Sealed) else [*map(int, form_of(sample.output))]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Answers of one kind: how many, and how many of them became right or became wrong."""

    n: int
    won: int
    lost: int


@dataclass(frozen=True, kw_only=True)
class Split:
    """The answers to the same problems before and after, by whether their form is another."""

    changed: Part
    unchanged: Part


def split_by_form(before: Sequence[Sample], after: Sequence[Sample]) -> Split:
    """How one answer to each problem became another: lines, corrections, program, box; and right.

    Raises:
        BadValue: the answers are not one to each of the same problems.
    """
    old = {sample.id: sample for sample in before}
    if not len(old) == len(before) == len(after) or old.keys() != {s.id for s in after}:
        raise BadValue(
            f"{len(before)} answers before and {len(after)} after: expected one to each of the "
            "same problems"
        )
    kinds: dict[bool, list[tuple[bool, bool]]] = {True: [], False: []}
    for new in after:
        was = old[new.id]
        other = form_in(was) != form_in(new)
        kinds[other].append((was.correct is True, new.correct is True))
    return Split(changed=counted(kinds[True]), unchanged=counted(kinds[False]))


def counted(pairs: Sequence[tuple[bool, bool]]) -> Part:
    """Answers that were right before and are right after, counted."""
    won = sum(is_right and not was_right for was_right, is_right in pairs)
    lost = sum(was_right and not is_right for was_right, is_right in pairs)
    return Part(n=len(pairs), won=won, lost=lost)
