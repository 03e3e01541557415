"""Settings of rejection sampling: what is sampled, and which completions are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.option import option
from core.preparations.sampled_answers import AnswersConfig


@dataclass
class RejectionConfig(AnswersConfig):
    """Settings of sampling, and of which completions become rows."""

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    ACTS: ClassVar[frozenset[str]] = AnswersConfig.ACTS | {
        "answer_mode",
        "kept_per_prompt",
        "least_reward",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {"answer_mode": ("cot", "tir")}
    AT_LEAST: ClassVar[Mapping[str, float]] = {**AnswersConfig.AT_LEAST, "kept_per_prompt": 1}

    least_reward: float = option(1.0, "Sum of rewards from which a completion is kept.")
    kept_per_prompt: int | None = option(
        None, "Greatest number of kept completions per prompt; all if unset."
    )
