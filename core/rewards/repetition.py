"""Reward that discourages tokens that repeat themselves."""

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
