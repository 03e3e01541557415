"""TRL's rewards for an answer that equals the column `solution`, under TRL's names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.completions import Completion, first_text
from core.rewards.cosine import cosine
from core.rewards.timeouts import LogMetric, log_timeouts
from eval.errors import BadValue
from eval.grading.whole_text import LATE, TextVerdict, verify_texts

LogExtra = Callable[[str, list[Any]], None]
UNFINISHED = TextVerdict(False, "[incomplete reasoning]", "[incomplete reasoning]")


def accuracy_reward(
    completions: Sequence[Completion],
    solution: Sequence[str],
    log_extra: LogExtra | None = None,
    **columns: Any,  # of the dataset, and `log_metric`
) -> list[float | None]:
    """1 for the solution's answer, else 0; None where the solution has none or no verdict is due.

    The answer is read from the completion's LaTeX, a box first; that of a completion with reasoning
    marks is read outside the reasoning, as in the evaluation.
    """
    found = verify_texts(solution, [first_text(one) for one in completions], "outputs")
    log_timeouts(columns.get("log_metric"), "accuracy_reward", count_late(found))
    return rewards(found, solution, log_extra)


def reasoning_accuracy_reward(
    completions: Sequence[Completion],
    solution: Sequence[str],
    reasoning_delimiters: Sequence[str] | None = None,
    log_extra: LogExtra | None = None,
    **columns: Any,  # of the dataset, and `log_metric`
) -> list[float | None]:
    """`accuracy_reward` of what follows the reasoning, which ends with the first delimiter found.

    By default that is `</think>`; 0 for a completion without any.
    """
    ends = ["</think>"] if reasoning_delimiters is None else reasoning_delimiters
    answers = [after_reasoning(first_text(completion), ends) for completion in completions]
    finished = [
        (gold, text) for gold, text in zip(solution, answers, strict=True) if text is not None
    ]
    verdicts = iter(verify_texts([gold for gold, _ in finished], [text for _, text in finished]))
    found = [UNFINISHED if text is None else next(verdicts) for text in answers]
    log_timeouts(columns.get("log_metric"), "reasoning_accuracy_reward", count_late(found))
    return rewards(found, solution, log_extra)


def rewards(
    verdicts: Sequence[TextVerdict], solution: Sequence[str], log_extra: LogExtra | None
) -> list[float | None]:
    """Convert verdicts to numbers; log the parsed texts to the table of completions."""
    if log_extra is not None:
        log_extra("solution", list(solution))
        log_extra("gold_parsed", [verdict.solution for verdict in verdicts])
        log_extra("answer_parsed", [verdict.answer for verdict in verdicts])
    return [None if verdict.correct is None else float(verdict.correct) for verdict in verdicts]


def count_late(verdicts: Sequence[TextVerdict]) -> int:
    """Return the number of verdicts that are missing because the deadline passed."""
    return sum(verdict == LATE for verdict in verdicts)


def after_reasoning(text: str, ends: Sequence[str]) -> str | None:
    """Return the text after the last occurrence of the first of `ends` in it; None without one."""
    end = next((end for end in ends if end in text), None)
    return None if end is None else text.rpartition(end)[2]


@dataclass(frozen=True)
class CosineScaled:
    """Accuracy between two values, by a cosine of the length (arXiv 2502.03373 appendix C.1).

    `cosine` of |y| / L_max: a right completion starts at `max_value_correct` and ends at
    `min_value_correct`, a wrong one at `min_value_wrong` and `max_value_wrong`.
    """

    max_len: int
    min_value_wrong: float = -1.0
    max_value_wrong: float = -0.5
    min_value_correct: float = 0.5
    max_value_correct: float = 1.0

    def __post_init__(self):
        if self.max_len < 1:
            raise BadValue(f"{self}: expected max_len of at least 1 token")

    @property
    def __name__(self) -> str:
        return "cosine_scaled_reward"

    def __call__(
        self,
        completions: Sequence[Completion],
        solution: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        log_metric: LogMetric | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Judge each completion, and look at its number of tokens."""
        found = verify_texts(solution, [first_text(one) for one in completions], "outputs")
        log_timeouts(log_metric, self.__name__, count_late(found))
        return [
            None if verdict.correct is None else self.scaled(verdict.correct, len(ids))
            for verdict, ids in zip(found, completion_ids, strict=True)
        ]

    def scaled(self, correct: bool, length: int) -> float:
        """The value at a length."""
        ends = (
            (self.max_value_correct, self.min_value_correct)
            if correct
            else (self.min_value_wrong, self.max_value_wrong)
        )
        return cosine(length / self.max_len, *ends)


def get_cosine_scaled_reward(
    max_len: int,
    min_value_wrong: float = -1.0,
    max_value_wrong: float = -0.5,
    min_value_correct: float = 0.5,
    max_value_correct: float = 1.0,
) -> CosineScaled:
    """`CosineScaled` under TRL's name."""
    return CosineScaled(
        max_len, min_value_wrong, max_value_wrong, min_value_correct, max_value_correct
    )
