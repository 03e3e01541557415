"""Reward whose answers are wrong at a rate, like those of an unreliable verifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from core.rewards.completions import Completion, completion_text
from eval.errors import BadValue


@dataclass(frozen=True)
class Flipped:
    """`reward`, whose values 0 and 1 are exchanged for a share of the completions.

    Each completion of each step is drawn anew, as a function of the step, its place and its texts,
    so that a run can be repeated. None stays None.
    """

    reward: Callable[..., Sequence[float | None]]
    share: float

    def __post_init__(self):
        if not 0 < self.share < 1:
            raise BadValue(f"{self}: expected share between 0 and 1")
        if getattr(self.reward, "per_step", False):
            raise BadValue(f"{self}: expected a reward of whole completions, not of their steps")

    @property
    def __name__(self) -> str:
        return f"flipped_{self.reward.__name__}"

    def __call__(
        self,
        *,
        prompts: Sequence[Completion],
        completions: Sequence[Completion],
        **columns: Any,  # of the reward, and the state of the trainer
    ) -> list[float | None]:
        """Call the reward, and exchange the values of the completions that are drawn."""
        values = self.reward(prompts=prompts, completions=completions, **columns)
        step = getattr(columns.get("trainer_state"), "global_step", 0)
        return [
            1 - value if value is not None and self.is_drawn(step, place, *texts) else value
            for place, (value, *texts) in enumerate(zip(values, prompts, completions, strict=True))
        ]

    def is_drawn(self, step: int, place: int, prompt: Completion, completion: Completion) -> bool:
        """Return whether the value of a completion is exchanged."""
        text = repr((step, place, completion_text(prompt), completion_text(completion)))
        return int.from_bytes(sha256(text.encode()).digest()[:7]) < self.share * 2**56
