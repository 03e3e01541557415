"""Accuracy of running sums, with feedback on an attempt: the right sums through the first error."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.rewards.accuracy import Accuracy
from core.rewards.completions import Completion, completion_text, question_text
from eval.nano.running_sums import right_prefixes, running_sums


@dataclass(frozen=True)
class FirstWrongStep(Accuracy):
    """`Accuracy`, which writes feedback: the right sums through the first wrong one.

    An attempt that ends too early is wrong where it ends.
    """

    def feedback(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        **_: object,  # columns of the dataset
    ) -> list[str | None]:
        """Return the feedback on each completion; None for a right one."""
        pairs = zip(map(question_text, prompts), map(completion_text, completions), strict=True)
        return [right_beginning(question, attempt) for question, attempt in pairs]


def right_beginning(question: str, attempt: str) -> str | None:
    """Return the right sums of a question through the first wrong one of an attempt, if any is."""
    right = running_sums(question)
    return None if attempt == right else right[: sum(right_prefixes(question, attempt))]
