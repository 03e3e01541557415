"""Reward for a correct final answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.completions import Completion, completion_text
from core.rewards.timeouts import LogMetric, log_timeouts
from eval.grading import grade_many
from eval.json_lines import JsonFields, JsonObject, answer_text
from eval.sets.problem import Answers

WHOLE = "whole"  # the value of `Answers.counts` that replaces boxes by patterns


@dataclass(frozen=True)
class Accuracy:
    """`right` if the benchmark's own grader accepts the answer, `wrong` if not, None if it cannot.

    Reads the columns `answer` and, if there are any, `language`, `exact_form`: whether the question
    asks for the answer's form too, such as lowest terms, and of `answers` the pattern of a
    benchmark that judges in its own way, and whether its answers are verbatim.
    """

    right: float = 1.0
    wrong: float = 0.0

    @property
    def __name__(self) -> str:
        return "accuracy"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        answer: Sequence[str | float],
        language: Sequence[str] | None = None,
        exact_form: Sequence[bool | None] | None = None,
        answers: Sequence[Mapping[str, Any] | None] | None = None,  # Any: fields of `Answers`
        log_metric: LogMetric | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Grade each completion against its answer, a text or a number.

        Raises:
            DamagedFile: an answer is empty, missing or not a finite number.
        """
        texts = [completion_text(completion) for completion in completions]
        right = [answer_text(one, f"row {i} of the rewarded") for i, one in enumerate(answer)]
        forms = exact_form or [False] * len(answer)
        asked = [
            Answers((one,), exact_form=bool(form), **own_way(row or {}))
            for one, form, row in zip(right, forms, answers or [None] * len(answer), strict=True)
        ]
        verdicts = grade_many(texts, asked, language or "en")
        log_timeouts(log_metric, self.__name__, sum(v.rule == "timeout" for v in verdicts))
        value = {True: self.right, False: self.wrong, None: None}
        return [value[verdict.correct] for verdict in verdicts]


def own_way(answers: JsonFields) -> JsonObject:
    """Return the fields of a row by which a benchmark judges in its own way."""
    counting = {"counts": WHOLE} if answers.get("counts") == WHOLE else {}
    return counting | {name: answers[name] for name in ("pattern", "verbatim") if answers.get(name)}
