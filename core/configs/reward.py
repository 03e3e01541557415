"""Settings of reward models, with TRL's names and defaults, and those of all models that score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.answer_config import AnswerConfig
from core.configs.base import padding_multiple
from core.configs.reference_free_config import SMOOTHED_TOKENS
from core.option import option


@dataclass
class ScoringConfig(AnswerConfig):
    """Settings that trainers of models that score share.

    Raises:
        BadValue: see `BaseConfig`.
    """

    disable_dropout: bool = option(True, "Train without dropout.")
    dataset_num_proc: int | None = option(None, "Processes that prepare the dataset.")

    @property
    def router_weight(self) -> float:
        """0: the outputs of transformers' classifiers have no load-balancing loss of experts."""
        return 0.0


@dataclass
class RewardConfig(ScoringConfig):
    """Settings of `RewardTrainer`, with the names and defaults of TRL 1.16.

    Raises:
        BadValue: see `BaseConfig`.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        **SMOOTHED_TOKENS,
        "activation_offloading": "activation checkpoints stay where the model is",
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {"max_length": 1, "center_rewards_coefficient": 0.0}

    learning_rate: float = option(1e-4, "Initial learning rate of AdamW.")
    chat_template_path: str | None = option(None, "Tokenizer or Jinja file with a chat template.")
    eos_token: str | None = option(None, "Token that ends a sequence; unset, the tokenizer's.")
    max_length: int | None = option(
        1024, "Longest text in tokens; pairs with a longer one are dropped."
    )
    pad_to_multiple_of: int | str | None = option("auto", "Pad lengths to a multiple of this.")
    center_rewards_coefficient: float | None = option(
        None, "Weight of the squared sum of the rewards of a pair, arXiv 2312.09244; unset, 0."
    )
    activation_offloading: bool = option(False, "Not supported.")
    pad_token: str | None = option(None, "Token that pads; unset, the tokenizer's.")

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, and the multiple of padding."""
        super().resolve()
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)

    @property
    def weights(self) -> Mapping[str, float]:
        """Weights of the terms of the loss of a pair, by the name of a row of `PAIR_TERMS`."""
        coefficient = self.center_rewards_coefficient
        return {"bradley_terry": 1.0, **({"centred": coefficient} if coefficient else {})}
