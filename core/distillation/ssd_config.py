"""Settings of simple self-distillation, with TRL's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from core.configs.generation_keywords import check_keywords, check_sampling, sampling_settings
from core.configs.rollout import RolloutConfig
from core.option import option

ONE = "each prompt has one completion"
NO_REWARD = "completions have no rewards"
NO_LOG = "completions are not logged"
IDLE: Mapping[str, str] = {  # settings of rollouts that have no effect here
    **dict.fromkeys(("num_generations", "num_generations_eval"), ONE),
    **dict.fromkeys(("reward_weights", "rollout_selection", "selection_reward"), NO_REWARD),
    **dict.fromkeys(("selection_draws", "selection_fills_up", "selection_kept"), NO_REWARD),
    "prompt_retirement": NO_REWARD,
    **dict.fromkeys(("log_completions", "log_multimodal", "num_completions_to_print"), NO_LOG),
    "log_unique_prompts": NO_LOG,
    "mask_truncated_completions": "completions are not verified; see filter_empty",
    "sync_ref_model": "the reference, if it samples, is the frozen starting model",
    "ref_model_mixup_alpha": "the reference does not move",
    "ref_model_sync_steps": "the reference does not move",
    "router_aux_loss_coef": "the loss has no load-balancing term",
    "compare_sampler": "the loss does not read the probabilities of the sampler",
    "keep_sampling_mask": "log-probabilities are over all tokens",
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
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = RolloutConfig.CHOICES
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

    def check_sampling(self) -> None:
        """Refuse keywords that the engine does not take, and values that leave nothing to draw."""
        check_keywords(self.rollout_engine, self.generation_keywords)
        check_sampling(sampling_settings(self))
