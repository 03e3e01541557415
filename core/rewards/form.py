"""Rewards for the form of a completion, regardless of its content."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from core.rewards.completions import (
    THINK,
    Completion,
    after_opened_thought,
    completion_text,
    first_text,
)
from eval.errors import BadValue


@dataclass(frozen=True)
class Format:
    r"""`right` if the pattern is found in the completion (`.` matches newlines), else `wrong`.

    The default asks for an answer within `\boxed{}`.
    """

    pattern: str = r"\\boxed\{.+\}"
    right: float = 1.0
    wrong: float = 0.0

    @property
    def __name__(self) -> str:
        return "format"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Search each completion."""
        search = re.compile(self.pattern, re.DOTALL).search
        return [
            self.right if search(completion_text(completion)) else self.wrong
            for completion in completions
        ]


@dataclass(frozen=True)
class ThinkFormat:
    """`right` for reasoning within one `<think>` at the start and a `</think>`, else `wrong`.

    The `<think>` may be the end of the prompt instead, as some chat templates write it.
    """

    reads_prompt_texts: ClassVar[bool] = True
    right: float = 1.0
    wrong: float = 0.0

    @property
    def __name__(self) -> str:
        return "think_format"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        prompt_texts: Sequence[str] | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Read each completion."""
        texts = after_opened_thought([completion_text(c) for c in completions], prompt_texts)
        return [self.right if thinks_first(text) else self.wrong for text in texts]


@dataclass(frozen=True)
class TagCount:
    """The share of `tags` that a completion has exactly once, wherever they stand.

    A `<think>` that ends the prompt, as some chat templates write it, counts as the completion's.
    """

    reads_prompt_texts: ClassVar[bool] = True
    tags: tuple[str, ...] = ("<think>", "</think>", "<answer>", "</answer>")

    def __post_init__(self):
        if not self.tags or not all(self.tags):
            raise BadValue(f"{self}: expected tags, each of at least one character")

    @property
    def __name__(self) -> str:
        return "tag_count"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        prompt_texts: Sequence[str] | None = None,
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Count the tags of each completion."""
        texts = after_opened_thought([completion_text(c) for c in completions], prompt_texts)
        return [sum(text.count(tag) == 1 for tag in self.tags) / len(self.tags) for text in texts]


def think_format_reward(
    completions: Sequence[Completion],
    **columns: Any,  # other columns of the dataset
) -> list[float | None]:
    """Return 1 for reasoning within one `<think>` at the start and a `</think>`, else 0.

    The function has TRL's name. Its `<think>` may be the end of the prompt instead, as some chat
    templates write it; the column `prompt_texts` has the prompts as the model reads them.
    """
    prompts = columns.get("prompt_texts")
    texts = after_opened_thought([first_text(c) for c in completions], prompts)
    return [float(thinks_first(text)) for text in texts]


vars(think_format_reward)["reads_prompt_texts"] = True


def thinks_first(text: str) -> bool:
    """Return whether a text begins with its only `<think>` and contains `</think>`."""
    before, begin, remainder = text.partition(THINK)
    return bool(begin) and not before and THINK not in remainder and "</think>" in remainder
