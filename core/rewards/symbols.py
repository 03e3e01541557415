"""Reward for the right symbols of an answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue

CLASSES = re.compile(r"(\[\w+\])+")


@dataclass(frozen=True)
class SymbolAccuracy:
    """Share of an answer's symbols that are right, from 0 to 1.

    Reads the column `answer`, a character class of the right symbols at each place, such as
    `[37][12]`. Places that only one of answer and completion has count as wrong ones.
    """

    @property
    def __name__(self) -> str:
        return "symbol_accuracy"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        answer: Sequence[str],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Compare each completion with its answer.

        Raises:
            BadValue: an answer is no sequence of character classes.
        """
        texts = [completion_text(completion) for completion in completions]
        return [symbol_share(text, classes) for text, classes in zip(texts, answer, strict=True)]


def symbol_share(text: str, answer: str) -> float:
    """Return the share of places at which a text has a symbol of the answer's character class."""
    if not CLASSES.fullmatch(answer):
        raise BadValue(f"answer {answer!r}: expected a character class a symbol, such as [37][12]")
    classes = answer[1:-1].split("][")
    right = sum(symbol in allowed for symbol, allowed in zip(text, classes, strict=False))
    return right / max(len(text), len(classes))
