"""Reward for each correct step, for process supervision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from core.rewards.completions import Completion, completion_text, question_text
from eval.pocket.steps import step_verdicts


@dataclass(frozen=True)
class StepAccuracy:
    """(offset just after the step, `right` or `wrong`) for every step of a completion.

    A step is right if the solution has it, or, of a question without one in the column `solution`,
    if its arithmetic holds and starts from known numbers; reads the column `answer` too.
    `per_step` tells the trainer that the values are lists of steps.
    """

    right: float = 1.0
    wrong: float = 0.0
    per_step: ClassVar[bool] = True

    @property
    def __name__(self) -> str:
        return "step_accuracy"

    def __call__(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        answer: Sequence[str],
        solution: Sequence[str | None] | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[list[tuple[int, float]]]:
        """Judge the steps of each completion."""
        known = solution or [None] * len(answer)
        samples = zip(prompts, completions, answer, known, strict=True)
        return [
            [
                (end, self.right if correct else self.wrong)
                for end, correct in step_verdicts(
                    question_text(prompt), gold, completion_text(completion), lines
                )
            ]
            for prompt, completion, gold, lines in samples
        ]
