"""Reward for reasoning in the language of the question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.completions import Completion, completion_text

COMMAND = re.compile(r"\\[A-Za-z]+")  # of LaTeX, which is no word of any language
WORDS = {"en": re.compile(r"[A-Za-z]{2,}"), "zh": re.compile(r"[\u4e00-\u9fff]")}


@dataclass(frozen=True)
class LanguageConsistency:
    """The share of a completion's words that are of the language in the column `language`.

    arXiv 2501.12948 s2.3.2, for English and Chinese; None for another language. Of a completion
    with `</think>` only what precedes it counts. A Chinese character is a word, a single letter or
    a LaTeX command is none; a completion without words gets 0.
    """

    @property
    def __name__(self) -> str:
        return "language_consistency"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        language: Sequence[str],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Count the words of each completion."""
        texts = [completion_text(completion) for completion in completions]
        return [consistency(text, name) for text, name in zip(texts, language, strict=True)]


def consistency(text: str, language: str) -> float | None:
    """Return the share of words in a language; None for a language without a word pattern."""
    if language not in WORDS:
        return None
    thought, end, _ = text.rpartition("</think>")
    plain = COMMAND.sub(" ", thought if end else text)
    counts = {name: len(pattern.findall(plain)) for name, pattern in WORDS.items()}
    return counts[language] / total if (total := sum(counts.values())) else 0.0
