"""Settings of simple self-distillation, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.rollout import RolloutConfig
from core.distillation.unrewarded import UNREWARDED
from core.option import option

ONE = "each prompt has one completion"
IDLE: Mapping[str, str] = {  # settings of rollouts that have no effect here
    **UNREWARDED,
    **dict.fromkeys(("num_generations", "num_generations_eval"), ONE),
    "mask_truncated_completions": "completions are not verified; see filter_empty",
    "sync_ref_model": "the reference, if it samples, is the frozen starting model",
    "ref_model_mixup_alpha": "the reference does not move",
    "ref_model_sync_steps": "the reference does not move",
    "compare_sampler": "the loss does not read the probabilities of the sampler",
}


@dataclass
class SSDConfig(RolloutConfig):
    """Settings of `SSDTrainer`, with the names and defaults of TRL 1.15, and of rollouts.

    `temperature`, `top_k`, `top_p` and `min_p` are those of sampling alone: the likelihood is that
    at temperature 1, over all tokens. With `rollout_policy="reference"` the frozen starting model
    samples, as in the paper; the default is TRL's, the trained model.

    Raises:
        BadValue: see `BaseConfig`, or a value is out of range.
    """

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {**RolloutConfig.UNSUPPORTED, **IDLE}
    REMOVED: ClassVar[Mapping[str, str]] = {}
    AT_LEAST: ClassVar[Mapping[str, float]] = {**RolloutConfig.AT_LEAST, "max_prompt_length": 1}

    learning_rate: float = option(5e-5, "Initial learning rate of AdamW.")
    disable_dropout: bool = option(True, "Train without dropout.")
    remove_unused_columns: bool = option(True, "Keep only `prompt`.")
    num_generations: int = option(1, "Completions of one prompt.")
    max_completion_length: int = option(256, "Longest completion in tokens.")
    temperature: float = option(1.0, "Sampling temperature; the loss does not use it.")

    max_prompt_length: int | None = option(
        512, "Longest prompt in tokens, of which the end is kept; unset, none is cut."
    )
    filter_empty: bool = option(
        True,
        "Leave out completions that are empty, or one line of fewer than 10 characters.",
    )

    @property
    def longest_prompt(self) -> int | None:
        """Number of tokens to which prompts are cut, from the left."""
        return self.max_prompt_length

    @property
    def heats_loss(self) -> bool:
        """False: log-probabilities have temperature 1."""
        return False
