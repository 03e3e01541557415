"""Reward for the form of a completion, whatever it says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.rewards.completions import Completion, completion_text, first_text
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
    """`right` for reasoning within one `<think>` at the start and a `</think>`, else `wrong`."""

    right: float = 1.0
    wrong: float = 0.0

    @property
    def __name__(self) -> str:
        return "think_format"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Read each completion."""
        texts = [completion_text(completion) for completion in completions]
        return [self.right if thinks_first(text) else self.wrong for text in texts]


@dataclass(frozen=True)
class TagCount:
    """The share of `tags` that a completion has exactly once, wherever they stand."""

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
        **_: Any,  # other columns of the dataset
    ) -> list[float | None]:
        """Count the tags of each completion."""
        texts = [completion_text(completion) for completion in completions]
        return [sum(text.count(tag) == 1 for tag in self.tags) / len(self.tags) for text in texts]


def think_format_reward(
    completions: Sequence[Completion],
    **_: Any,  # other columns of the dataset
) -> list[float | None]:
    """1 for reasoning within one `<think>` at the start and a `</think>`, else 0; TRL's name."""
    return [float(thinks_first(first_text(completion))) for completion in completions]


def thinks_first(text: str) -> bool:
    """Whether a text begins with its only `<think>`, which is closed."""
    before, begin, rest = text.partition("<think>")
    return bool(begin) and not before and "<think>" not in rest and "</think>" in rest
