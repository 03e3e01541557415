"""Counts answers as votes: those of equal value are one, however they are written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval.grading import answer_key, grade_many
from eval.grading.numerals import read_number
from eval.samples.store import Sample
from eval.stats.estimates import Votes, maj_at_k

RIGHT = 0  # the label of every right answer; wrong ones are 1, 2, ... in the order of grouping


@dataclass(frozen=True)
class Ballots:
    """The samples of all problems, each row in the order of drawing, and what each voted for."""

    rows: Sequence[Sequence[Sample]]

    @cached_property
    def labels(self) -> list[list[int | None]]:
        """The group of each sample's answer within its problem; None for no answer."""
        wrong = [
            {answer_key(s.extracted): s.extracted for s in row if s.extracted and not s.correct}
            for row in self.rows
        ]
        return [
            [
                RIGHT if s.correct else group[answer_key(s.extracted)] if s.extracted else None
                for s in row
            ]
            for row, group in zip(self.rows, equal_groups(wrong), strict=True)
        ]

    def expected(self, k: int, seed: int) -> list[float]:
        """Each problem's vote among any k of its samples; tied answers share it."""
        return [maj_at_k(tally(row), k, seed=seed) for row in self.labels]

    def first_seen(self, k: int) -> list[float]:
        """Each problem's vote among its first k samples; of tied answers the one seen first."""
        return [float(first_winner(row[:k]) == RIGHT) for row in self.labels]


def tally(labels: Sequence[int | None]) -> Votes:
    """A problem's labels as counts, the right answer first, then by size."""
    counts = Counter(label for label in labels if label is not None)
    order = sorted(counts, key=lambda label: (label != RIGHT, -counts[label]))
    return Votes(
        tuple(counts[label] for label in order),
        tuple(label == RIGHT for label in order),
        sum(label is None for label in labels),
    )


def first_winner(labels: Sequence[int | None]) -> int | None:
    """The most frequent label, the first seen of equal ones; None when nobody voted."""
    counts = Counter(label for label in labels if label is not None)  # keeps first-seen order
    return max(counts, key=lambda label: counts[label], default=None)


def equal_groups(answers: Sequence[Mapping[str, str]]) -> list[dict[str, int]]:
    """Number the groups of equal answers of each problem from 1; answers are keys with their text.

    In rounds: a problem's first answer without a group opens one, and its other ones are compared
    with it, all problems at once.
    """
    groups: list[dict[str, int]] = [{} for _ in answers]
    waiting = [list(row) for row in answers]
    while any(waiting):
        pairs = [(i, row[0], other) for i, row in enumerate(waiting) for other in row[1:]]
        equal = equal_pairs([(answers[i][a], answers[i][b]) for i, a, b in pairs])
        joined = {(i, b) for (i, _, b), same in zip(pairs, equal, strict=True) if same}
        for i, row in enumerate(waiting):
            number = 1 + max(groups[i].values(), default=0)
            members = [key for key in row if key == row[0] or (i, key) in joined]
            groups[i].update(dict.fromkeys(members, number))
            waiting[i] = [key for key in row if key not in groups[i]]
    return groups


def equal_pairs(pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Are the two equal to the grader? Plain numbers with different keys are not."""
    asked = [pair for pair in pairs if None in map(read_number, pair)]
    verdicts = grade_many([rf"\boxed{{{b}}}" for _, b in asked], [a for a, _ in asked])
    equal = {pair for pair, v in zip(asked, verdicts, strict=True) if v.correct}
    return [pair in equal for pair in pairs]
