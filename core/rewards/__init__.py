"""Rewards as frozen callable dataclasses: keyword call, lists in, `list[float | None]` out.

Those of TRL have TRL's names and values.
"""

from core.rewards.accuracy import Accuracy
from core.rewards.completions import Completion, completion_text
from core.rewards.correctness import (
    accuracy_reward,
    get_cosine_scaled_reward,
    reasoning_accuracy_reward,
)
from core.rewards.form import Format, think_format_reward
from core.rewards.length import SoftOverlong, get_soft_overlong_punishment
from core.rewards.repetition import get_repetition_penalty_reward
from core.rewards.steps import StepAccuracy

__all__ = [
    "Accuracy",
    "Completion",
    "Format",
    "SoftOverlong",
    "StepAccuracy",
    "accuracy_reward",
    "completion_text",
    "get_cosine_scaled_reward",
    "get_repetition_penalty_reward",
    "get_soft_overlong_punishment",
    "reasoning_accuracy_reward",
    "think_format_reward",
]
