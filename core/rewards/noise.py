"""Reward with Gaussian noise, like that of a learned judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import NormalDist
from typing import Any

from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue


@dataclass(frozen=True)
class Noisy:
    """`reward` plus Gaussian noise of a deviation; arXiv 2402.14740.

    The noise is a fixed function of the prompt and the completion, so that a run can be repeated.
    None stays None.
    """

    reward: Callable[..., Sequence[float | None]]
    deviation: float

    def __post_init__(self):
        if not self.deviation > 0:
            raise BadValue(f"{self}: expected deviation above 0")
        if getattr(self.reward, "per_step", False):
            raise BadValue(f"{self}: expected a reward of whole completions, not of their steps")

    @property
    def __name__(self) -> str:
        return f"noisy_{self.reward.__name__}"

    def __call__(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        **columns: Any,  # of the reward
    ) -> list[float | None]:
        """Call the reward, and add to each value the noise of its text."""
        values = self.reward(prompts=prompts, completions=completions, **columns)
        rows = zip(prompts, completions, values, strict=True)
        return [
            None if value is None else value + self.deviation * noise(prompt, completion)
            for prompt, completion, value in rows
        ]


def noise(prompt: Completion, completion: Completion) -> float:
    """Return a standard normal number that is a function of both texts."""
    digest = sha256(repr((completion_text(prompt), completion_text(completion))).encode()).digest()
    return NormalDist().inv_cdf((int.from_bytes(digest[:7]) + 0.5) / 2**56)
