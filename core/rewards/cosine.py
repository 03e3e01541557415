"""Reward for correctness that follows a cosine of the length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.accuracy import Accuracy
from core.rewards.completions import Completion
from eval.errors import BadValue


def cosine(share: float, start: float, end: float) -> float:
    """Return end + (start - end) (1 + cos(pi share)) / 2: `start` at 0, `end` from 1 on."""
    return end + 0.5 * (start - end) * (1.0 + math.cos(math.pi * min(share, 1.0)))


@dataclass(frozen=True)
class CosineLength:
    """`right` or `wrong`, each from its first value to its second by `cosine` of the length.

    A right completion changes its worth from `right_from` tokens to `max_length`, a wrong one from
    none to `wrong_until`, which unset is `max_length`. One that reaches `max_length` has run out of
    room and gets `at_limit` either way, unless that is None. The defaults are the main values of
    arXiv 2502.03373; with `right_from` and `wrong_until` it is the length-aware accuracy of
    Phi-4-reasoning, which arXiv 2508.09726 trains with. Reads the columns of `Accuracy`.
    """

    max_length: int
    right: tuple[float, float] = (2.0, 1.0)
    wrong: tuple[float, float] = (-10.0, 0.0)
    at_limit: float | None = -10.0
    right_from: int = 0
    wrong_until: int | None = None

    def __post_init__(self):
        until = self.max_length if self.wrong_until is None else self.wrong_until
        if not (0 <= self.right_from < self.max_length and 0 < until <= self.max_length):
            raise BadValue(
                f"{self}: expected 0 <= right_from < max_length and 0 < wrong_until <= max_length"
            )

    @property
    def __name__(self) -> str:
        return "cosine_length"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]],
        **columns: Any,  # of the dataset
    ) -> list[float | None]:
        """Grade each completion, and look at its number of tokens."""
        graded = Accuracy()(completions=completions, **columns)
        return [
            None if accuracy is None else self.worth(accuracy == 1.0, len(ids))
            for accuracy, ids in zip(graded, completion_ids, strict=True)
        ]

    def worth(self, correct: bool, length: int) -> float:
        """Return the reward of a completion of this length."""
        if self.at_limit is not None and length >= self.max_length:
            return self.at_limit
        if not correct:
            return cosine(length / (self.wrong_until or self.max_length), *self.wrong)
        beyond = max(0, length - self.right_from)
        return cosine(beyond / (self.max_length - self.right_from), *self.right)
