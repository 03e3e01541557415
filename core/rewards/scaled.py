"""Reward on another scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from eval.errors import BadValue


@dataclass(frozen=True)
class Scaled:
    """`reward` times a number; unlike a weight, part of the value before any normalisation."""

    reward: Callable[..., Sequence[float | None]]
    by: float

    def __post_init__(self):
        if not isfinite(self.by) or self.by == 0:
            raise BadValue(f"{self}: expected by to be finite and not 0")
        if getattr(self.reward, "per_step", False):
            raise BadValue(f"{self}: expected a reward of whole completions, not of their steps")

    @property
    def __name__(self) -> str:
        return f"scaled_{self.reward.__name__}"

    def __call__(self, **columns: Any) -> list[float | None]:  # of the reward
        """Call the reward, and multiply its values."""
        return [None if value is None else self.by * value for value in self.reward(**columns)]
