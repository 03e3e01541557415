"""Reward of an answer that a judge compares with another answer to the same prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any, ClassVar

from core.errors import RewardError
from core.rewards.completions import Completion, completion_text, question_text
from eval.errors import BadValue

SHARED = ("completion_ids", "trainer_state", "log_extra", "log_metric")  # not of the data


@dataclass(frozen=True)
class Judged:
    """The chance of each completion to be preferred to the other one of its pair.

    `judge` is called with texts: `prompts`, `first`, `second` and the columns of the data, one
    entry for each pair. It returns P(first over second), from 0 to 1.
    """

    judge: Callable[..., Sequence[float]]
    compares_pairs: ClassVar[bool] = True

    def __post_init__(self):
        if not callable(self.judge):
            raise BadValue(f"judge={self.judge!r}: expected a function, such as eval.judging's")

    @property
    def __name__(self) -> str:
        return "judge"

    @property
    def required_columns(self) -> tuple[str, ...]:
        """Columns of the data that the judge needs."""
        return getattr(self.judge, "required_columns", ())

    def __call__(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        **columns: Any,  # of the dataset
    ) -> list[float]:
        """Return P(y over y') of each completion y, whose pair follows or precedes it.

        Raises:
            BadValue: the completions are no pairs of the same prompt.
            RewardError: the judge returns something else than a chance for each pair.
        """
        if list(prompts[::2]) != list(prompts[1::2]):
            raise BadValue("a judge compares two completions of each prompt: expected pairs")
        texts = [completion_text(completion) for completion in completions]
        of_pairs = {name: rows[::2] for name, rows in columns.items() if name not in SHARED}
        questions = [question_text(prompt) for prompt in prompts[::2]]
        chances = self.judge(prompts=questions, first=texts[::2], second=texts[1::2], **of_pairs)
        return list(chain.from_iterable((p, 1 - p) for p in self.checked(chances, questions)))

    def checked(self, chances: Sequence[float], questions: Sequence[str]) -> list[float]:
        """Return the chances as numbers.

        Raises:
            RewardError: there is another number of them, or one is none from 0 to 1.
        """
        name = getattr(self.judge, "__name__", type(self.judge).__name__)
        values = [getattr(p, "item", lambda p=p: p)() for p in chances]
        if len(values) != len(questions):
            raise RewardError(
                f"judge {name} returned {len(values)} chances for {len(questions)} pairs: expected "
                "one for each pair"
            )
        for row, p in enumerate(values):
            if not (isinstance(p, int | float) and isfinite(p) and 0 <= p <= 1):
                raise RewardError(
                    f"judge {name} returned {p!r} for pair {row} ({questions[row]!r}): expected "
                    "the chance, 0 to 1, that the first completion is preferred"
                )
        return [float(p) for p in values]
