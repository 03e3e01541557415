"""Control reward that is independent of the completion that receives it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue


@dataclass(frozen=True)
class Shuffled:
    """The values of `reward`, dealt anew over the completions of a call.

    How many get which value stays as it is, so that training on it shows what comes of training
    alone. The same completions are dealt the same values.
    """

    reward: Callable[..., Sequence[float | None]]

    def __post_init__(self):
        if getattr(self.reward, "per_step", False):
            raise BadValue(f"{self}: expected a reward of whole completions, not of their steps")

    @property
    def __name__(self) -> str:
        return f"shuffled_{self.reward.__name__}"

    def __call__(
        self,
        *,
        completions: Sequence[Completion],
        **columns: Any,  # of the dataset
    ) -> list[float | None]:
        """Call the reward, and shuffle."""
        values = list(self.reward(completions=completions, **columns))
        Random(repr([completion_text(one) for one in completions])).shuffle(values)
        return values
