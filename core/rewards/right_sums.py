"""Reward for the right running sums of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.rewards.completions import Completion, completion_text, question_text
from eval.nano.running_sums import judge_sums


@dataclass(frozen=True)
class RightSums:
    """Share of the steps of a solution of the nano task `digits` that no wrong step precedes or is.

    It is from 0 to 1, and 0 without steps.
    """

    @property
    def __name__(self) -> str:
        return "right_sums"

    def __call__(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        **_: object,  # columns of the dataset
    ) -> list[float | None]:
        """Judge the steps of each completion."""
        pairs = zip(map(question_text, prompts), map(completion_text, completions), strict=True)
        verdicts = (judge_sums(question, solution).is_right for question, solution in pairs)
        return [sum(steps) / max(1, len(steps)) for steps in verdicts]
