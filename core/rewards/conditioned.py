"""Reward that is paid only where another reward is high enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eval.errors import BadValue


@dataclass(frozen=True)
class Conditioned:
    """`reward` where the reward `on` is `at_least` so much, else `otherwise`; arXiv 2601.05242.

    None where either has none.
    """

    reward: Callable[..., Sequence[float | None]]
    on: Callable[..., Sequence[float | None]]
    at_least: float = 1.0
    otherwise: float = 0.0

    def __post_init__(self):
        if any(getattr(part, "per_step", False) for part in (self.reward, self.on)):
            raise BadValue(f"{self}: expected rewards of whole completions, not of their steps")

    @property
    def __name__(self) -> str:
        return "{}_if_{}".format(*(part.__name__ for part in (self.reward, self.on)))

    def __call__(self, **columns: Any) -> list[float | None]:  # Any: of every reward
        """Call both rewards."""
        pairs = zip(self.reward(**columns), self.on(**columns), strict=True)
        return [self.paid(value, condition) for value, condition in pairs]

    def paid(self, value: float | None, condition: float | None) -> float | None:
        """Return the reward of one completion."""
        if value is None or condition is None:
            return None
        return value if condition >= self.at_least else self.otherwise
