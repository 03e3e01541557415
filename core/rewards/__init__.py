"""Rewards as frozen callable dataclasses: keyword call, lists in, `list[float | None]` out.

Rewards that TRL has, too, have TRL's names and values.
"""

from core.rewards.accuracy import Accuracy
from core.rewards.completions import Completion, completion_text
from core.rewards.conditioned import Conditioned
from core.rewards.correctness import (
    accuracy_reward,
    get_cosine_scaled_reward,
    reasoning_accuracy_reward,
)
from core.rewards.cosine import CosineLength
from core.rewards.first_wrong_step import FirstWrongStep
from core.rewards.flipped import Flipped
from core.rewards.form import Format, TagCount, ThinkFormat, think_format_reward
from core.rewards.judged import Judged
from core.rewards.language import LanguageConsistency
from core.rewards.length import (
    LengthTarget,
    LengthWithin,
    SoftOverlong,
    get_soft_overlong_punishment,
)
from core.rewards.noise import Noisy
from core.rewards.repetition import (
    DenseRepetition,
    RepetitionPenalty,
    get_repetition_penalty_reward,
)
from core.rewards.right_sums import RightSums
from core.rewards.scaled import Scaled
from core.rewards.shuffled import Shuffled
from core.rewards.steps import StepAccuracy
from core.rewards.symbols import SymbolAccuracy

__all__ = [
    "Accuracy",
    "Completion",
    "Conditioned",
    "CosineLength",
    "DenseRepetition",
    "FirstWrongStep",
    "Flipped",
    "Format",
    "Judged",
    "LanguageConsistency",
    "LengthTarget",
    "LengthWithin",
    "Noisy",
    "RepetitionPenalty",
    "RightSums",
    "Scaled",
    "Shuffled",
    "SoftOverlong",
    "StepAccuracy",
    "SymbolAccuracy",
    "TagCount",
    "ThinkFormat",
    "accuracy_reward",
    "completion_text",
    "get_cosine_scaled_reward",
    "get_repetition_penalty_reward",
    "get_soft_overlong_punishment",
    "reasoning_accuracy_reward",
    "think_format_reward",
]
