"""The form of an answer, and how much of a gain lies in answers whose form did not change."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.pocket.solver import REDO
from eval.samples.store import Sample


def form_of(output: str) -> tuple[int, int, bool, bool]:
    """How many lines, how many of them done again, whether it is a program, whether it boxes."""
    lines = output.splitlines()
    redone = sum(line.startswith(tuple(REDO.values())) for line in lines)
    return len(lines), redone, "```" in output, "\\boxed" in output


@dataclass(frozen=True, kw_only=True)
class Split:
    """A gain in points of accuracy, by answers whose form changed and answers whose did not."""

    n: int
    gain: float
    changed: float  # share of answers in another form, in percent
    gain_changed: float
    gain_unchanged: float


def split_gain(before: Sequence[Sample], after: Sequence[Sample]) -> Split:
    """The gain between one answer to each problem and another; both parts add up to it."""
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if b.id == a.id]
    parts = {True: 0, False: 0}
    changed = 0
    for b, a in pairs:
        other = form_of(b.output) != form_of(a.output)
        changed += other
        parts[other] += (a.correct is True) - (b.correct is True)
    n = len(pairs)
    return Split(
        n=n,
        gain=100 * (parts[True] + parts[False]) / n,
        changed=100 * changed / n,
        gain_changed=100 * parts[True] / n,
        gain_unchanged=100 * parts[False] / n,
    )
