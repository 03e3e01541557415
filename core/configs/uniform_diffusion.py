"""Settings of discrete diffusion with uniform noise, which TRL has an example of and no trainer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.answer_config import AnswerConfig
from core.configs.reference_free_config import SMOOTHED_TOKENS
from core.losses.diffusion import MODEL_PREDICTIONS
from core.option import choice, option


@dataclass
class UniformDiffusionConfig(AnswerConfig):
    """Settings of `UniformDiffusionTrainer`.

    Raises:
        BadValue: see `BaseConfig`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = SMOOTHED_TOKENS
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "model_prediction": tuple(MODEL_PREDICTIONS)
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 1}

    learning_rate: float = option(1.5e-4, "Initial learning rate of AdamW.")
    model_prediction: str = choice(
        "mean_loo", MODEL_PREDICTIONS, "What the model's logits say of a token"
    )
    dataset_text_field: str = option("text", "Column that holds the text.")
    dataset_num_proc: int | None = option(None, "Processes that prepare the dataset.")
    eos_token: str | None = option(None, "Token that ends a text; unset, the tokenizer's.")
    max_length: int | None = option(1024, "Longest text in tokens; longer ones are cut at the end.")
    disable_dropout: bool = option(True, "Train without dropout.")
