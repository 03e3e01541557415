"""Rewards that penalise repeated tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eval.errors import BadValue


@dataclass(frozen=True)
class RepetitionPenalty:
    """`max_penalty` times the share of n-grams that repeat others (arXiv 2502.03373 appendix C.2).

    (1 - different n-grams / all n-grams) p, and 0 for fewer tokens than one n-gram has.
    """

    ngram_size: int = 3
    max_penalty: float = -1.0

    def __post_init__(self):
        if self.ngram_size < 1 or self.max_penalty > 0:
            raise BadValue(
                f"{self}: expected ngram_size of at least 1 and max_penalty of at most 0"
            )

    @property
    def __name__(self) -> str:
        return "repetition_penalty_reward"

    def __call__(
        self,
        completion_ids: Sequence[Sequence[int]],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's tokens."""
        return [self.of(ids) for ids in completion_ids]

    def of(self, ids: Sequence[int]) -> float:
        """The penalty of one completion."""
        n = self.ngram_size
        grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
        repeated = 1 - len(set(grams)) / len(grams) if grams else 0
        return repeated * self.max_penalty if repeated else 0.0


def get_repetition_penalty_reward(
    ngram_size: int = 3, max_penalty: float = -1.0
) -> RepetitionPenalty:
    """`RepetitionPenalty` under TRL's name."""
    return RepetitionPenalty(ngram_size, max_penalty)


@dataclass(frozen=True)
class DenseRepetition:
    """`penalty` for each token within an n-gram that stood before (arXiv 2502.03373 appendix C.2).

    A completion gets the sum; `per_token` has what each token gets.
    """

    ngram_size: int = 40
    penalty: float = -0.05

    def __post_init__(self):
        if self.ngram_size < 1 or self.penalty > 0:
            raise BadValue(f"{self}: expected ngram_size of at least 1 and penalty of at most 0")

    @property
    def __name__(self) -> str:
        return "dense_repetition"

    def __call__(
        self,
        *,
        completion_ids: Sequence[Sequence[int]],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Look at each completion's tokens."""
        return [self.penalty * sum(repeated(ids, self.ngram_size)) for ids in completion_ids]

    def per_token(self, ids: Sequence[int]) -> list[float]:
        """The penalty of each token of a completion."""
        return [self.penalty * again for again in repeated(ids, self.ngram_size)]


def repeated(ids: Sequence[int], size: int) -> list[bool]:
    """Return for each token whether it lies in an n-gram of this size that occurred before."""
    earlier: set[tuple[int, ...]] = set()
    again = [False] * len(ids)
    for start in range(len(ids) - size + 1):
        gram = tuple(ids[start : start + size])
        if gram in earlier:
            again[start : start + size] = [True] * size
        earlier.add(gram)
    return again
