"""Settings of on-policy methods, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from transformers.utils import logging

from core.configs.base import BaseConfig, padding_multiple
from core.configs.engines import (
    ENGINES,
    ROLLOUT_POLICIES,
    VLLM_MODES,
    check_vllm,
    resolve_engine,
)
from core.configs.generation_keywords import check_keywords, check_sampling, sampling_settings
from core.configs.loss_traits import LossTraits
from core.configs.sampler import SamplerConfig
from core.losses.selection import SELECTIONS
from core.option import choice, option
from eval.errors import BadValue

logger = logging.get_logger(__name__)
NO_HUB = "nothing is uploaded"


@dataclass
class RolloutConfig(LossTraits, SamplerConfig, BaseConfig):
    """Settings that on-policy methods share: generation, engine, groups, rewards, the reference.

    `rollout_policy`, `rollout_engine`, `rollout_selection`, `selection_*`, `prompt_retirement` and
    those of `SamplerConfig` are not settings of TRL. At their defaults the random numbers of
    sampling differ.
    """

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [
        *BaseConfig._VALID_DICT_FIELDS,
        "model_init_kwargs",
        "transformers_continuous_batching_config",
        "generation_kwargs",
        "chat_template_kwargs",
    ]

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        "ds3_gather_for_generation": "parameters are always gathered for generation",
        "cache_implementation": "the engine is chosen by `rollout_engine`",
        "vllm_structured_outputs_regex": "completions are sampled freely",
        "log_completions_hub_repo": NO_HUB,
        "train_sampling_strategy": "prompts come in a random order, or with shuffle_dataset=False "
        "in that of the data",
        "auto_find_batch_size": "a smaller batch would break the groups",
    }
    REMOVED: ClassVar[Mapping[str, str]] = {
        "max_prompt_length": "TRL has had none since 0.28, and prompts are never cut here: drop or "
        "shorten longer prompts in the dataset, and leave it out",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "rollout_policy": tuple(ROLLOUT_POLICIES),
        "rollout_engine": tuple(ENGINES),
        "rollout_selection": tuple(SELECTIONS),
        "vllm_mode": tuple(VLLM_MODES),
        "vllm_model_impl": ("vllm", "transformers"),
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        **SamplerConfig.AT_LEAST,
        "router_aux_loss_coef": 0.0,
        "num_generations": 1,
        "num_generations_eval": 1,
        "max_completion_length": 1,
        "num_iterations": 1,
        "steps_per_generation": 1,
        "generation_batch_size": 1,
        "top_k": 0,
        "ref_model_sync_steps": 1,
        "selection_draws": 1,
        "selection_kept": 1,
        "vllm_server_timeout": 0.1,
        "vllm_max_model_length": 1,
        "vllm_tensor_parallel_size": 1,
    }

    learning_rate: float = option(1e-6, "Initial learning rate of AdamW.")
    router_aux_loss_coef: float | None = option(
        None, "Weight of the load-balancing loss of experts; unset, the model's own."
    )
    disable_dropout: bool = option(False, "Turn the policy's dropout off.")
    cast_lm_head_to_fp32: bool = option(False, "Compute the head in 32 bits.")

    remove_unused_columns: bool = option(False, "Keep only `prompt`; rewards want the rest.")
    num_generations: int = option(8, "Completions of one prompt: the group.")
    num_generations_eval: int | None = option(None, "The same in evaluation; unset, equal.")
    max_completion_length: int = option(512, "Longest completion in tokens.")
    ds3_gather_for_generation: bool = option(True, "Gather ZeRO-3 weights to generate.")
    shuffle_dataset: bool | None = option(True, "Visit the prompts in random order.")
    pad_to_multiple_of: int | str | None = option("auto", "Pad lengths to a multiple of this.")

    generation_batch_size: int | None = option(None, "Completions of one rollout, all processes.")
    steps_per_generation: int | None = option(
        None, "Micro-batches of one rollout; unset, `gradient_accumulation_steps`."
    )
    temperature: float = option(1.0, "Sampling temperature; log-probabilities use it too.")
    top_p: float = option(1.0, "Sample within this probability mass.")
    top_k: int = option(0, "Sample among this many tokens; 0 is all.")
    min_p: float | None = option(None, "Least probability, relative to the most probable token.")
    generation_kwargs: dict[str, Any] | str | None = option(
        None,
        "Keywords of `generate` that win over the settings of sampling, as the engine takes them.",
    )
    chat_template_kwargs: dict[str, Any] | str | None = option(None, "Chat template keywords.")
    repetition_penalty: float = option(1.0, "Penalty on tokens that have occurred.")
    cache_implementation: str | None = option(None, "Cache of `generate`.")

    use_vllm: bool = option(False, "Generate with vLLM; the same as rollout_engine='vllm'.")
    vllm_mode: str = choice("colocate", VLLM_MODES, "Where vLLM runs")
    vllm_model_impl: str = option("vllm", "Model code of a colocated vLLM.")
    vllm_enable_sleep_mode: bool = option(False, "Let a colocated vLLM free its memory meanwhile.")
    vllm_structured_outputs_regex: str | None = option(None, "Regular expression to decode by.")
    vllm_server_base_url: str | None = option(None, "Address of the server, for host and port.")
    vllm_server_host: str = option("0.0.0.0", "Host of the vLLM server.")
    vllm_server_port: int = option(8000, "Port of the vLLM server.")
    vllm_server_timeout: float = option(
        240.0, "Seconds to wait for the server to come up, and for each of its answers."
    )
    vllm_group_port: int = option(51216, "Port here at which weights go to the server.")
    vllm_gpu_memory_utilization: float = option(0.3, "Share of memory for a colocated vLLM.")
    vllm_max_model_length: int | None = option(None, "Longest context of a colocated vLLM.")
    vllm_tensor_parallel_size: int = option(1, "Devices of one colocated vLLM model.")

    num_iterations: int = option(1, "Passes over one rollout (mu of arXiv 2402.03300).")
    reward_weights: list[float] | None = option(None, "Weight of each reward; unset, 1.")
    mask_truncated_completions: bool = option(False, "Leave cut completions out of the loss.")
    sync_ref_model: bool = option(False, "Move the reference towards the policy.")
    ref_model_mixup_alpha: float = option(0.6, "Share of the policy in the moved reference.")
    ref_model_sync_steps: int = option(512, "Optimizer steps between two moves.")

    log_completions: bool = option(False, "Write sampled completions to parquet files.")
    log_multimodal: bool = option(True, "Log images too; there are none.")
    num_completions_to_print: int | None = option(None, "Completions printed; unset, all.")
    log_unique_prompts: bool = option(False, "Log one completion of each prompt.")
    log_completions_hub_repo: str | None = option(None, "Hub repository of the completions.")
    use_transformers_continuous_batching: bool = option(
        False, "Generate with paged attention; the same as rollout_engine='hf-cb'."
    )
    transformers_continuous_batching_config: dict[str, Any] | str | None = option(
        None, "Fields of transformers' `ContinuousBatchingConfig` for it."
    )

    rollout_policy: str = choice("policy", ROLLOUT_POLICIES, "Which policy samples")
    rollout_engine: str = choice("native", ENGINES, "What decodes")
    rollout_selection: str = choice(
        "all", SELECTIONS, "Completions of a rollout that are trained on"
    )
    selection_reward: str | None = option(
        None, "Name of the reward that a selection judges by; unset, the weighted sum of all."
    )
    selection_draws: int = option(10, "Draws of prompts for one rollout, at most.")
    selection_fills_up: bool = option(
        False, "Then fill it with the groups drawn first; unset, stop with an error."
    )
    selection_kept: int | None = option(None, "Completions of each group that are selected.")
    prompt_retirement: float | None = option(
        None,
        "Share of completions with a reward above 0 from which on a prompt is not drawn again; "
        "unset, all are.",
    )

    def resolve(self) -> None:
        """Resolve the settings as of every trainer, then rollout sizes, and check combinations.

        Raises:
            BadValue: a setting or a combination is refused.
        """
        super().resolve()
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)
        self.resolve_rollout_size()
        self.check_groups()
        self.check_policies()
        self.check_selection()
        resolve_engine(self)
        check_vllm(self)
        self.check_sampling()
        self.check_sampler(self)

    @property
    def samples_policy(self) -> bool:
        """True if the trained policy samples, not the frozen reference."""
        return ROLLOUT_POLICIES[self.rollout_policy].moves

    @property
    def compares_sampler(self) -> bool:
        """True if the engine's log-probabilities can differ, or are read in any case."""
        return self.use_vllm or self.alters_weights or self.compare_sampler

    @property
    def keeps_reference(self) -> bool:
        """True if the starting policy is kept: for its log-probabilities, or to sample from it."""
        return self.reads_reference or not self.samples_policy

    @property
    def unequal_reward_weights(self) -> list[float] | None:
        """The weights of the rewards if one of them is not 1, else None."""
        weights = self.reward_weights or []
        return weights if any(weight != 1 for weight in weights) else None

    @property
    def rollout_size(self) -> int:
        """Completions of one rollout, over all processes."""
        return self.generation_batch_size or 0  # set when the settings were built

    @property
    def rollout_prompts(self) -> int:
        """Prompts of one rollout, over all processes."""
        return self.rollout_size // self.num_generations

    @property
    def rollout_draws(self) -> int:
        """Greatest number of draws of prompts for one rollout."""
        return self.selection_draws if SELECTIONS[self.rollout_selection].refills else 1

    def selects_by(self, name: str) -> bool:
        """Return whether the selection reads a setting."""
        return name in SELECTIONS[self.rollout_selection].parameters

    @property
    def generations_eval(self) -> int:
        """Completions per prompt in evaluation; those in training if unset."""
        return self.num_generations_eval or self.num_generations

    @property
    def rollout_parts(self) -> int:
        """Micro-batches that one rollout is cut into on each process."""
        return self.steps_per_generation or 1  # set when the settings were built

    @property
    def rollout_uses(self) -> int:
        """Micro-batches that one rollout provides on each process, over all iterations."""
        return self.rollout_parts * self.num_iterations

    @property
    def mixes_rollouts(self) -> bool:
        """True if an optimizer step takes micro-batches of several rollouts."""
        return self.rollout_uses % self.gradient_accumulation_steps != 0

    @property
    def padding(self) -> int | None:
        """Multiple to which token widths are padded, or None."""
        return self.pad_to_multiple_of if isinstance(self.pad_to_multiple_of, int) else None

    @property
    def generation_keywords(self) -> Mapping[str, object]:
        """Keywords of generation that are given beside the fields."""
        return self.generation_kwargs if isinstance(self.generation_kwargs, dict) else {}

    @property
    def batching_keywords(self) -> Mapping[str, object]:
        """Settings of continuous batching."""
        keywords = self.transformers_continuous_batching_config
        return keywords if isinstance(keywords, dict) else {}

    @property
    def template(self) -> dict[str, object]:
        """Keywords of the chat template."""
        return (
            dict(self.chat_template_kwargs) if isinstance(self.chat_template_kwargs, dict) else {}
        )

    def resolve_rollout_size(self) -> None:
        """Fill `generation_batch_size` or `steps_per_generation`, whichever is unset.

        Raises:
            BadValue: both are set, or the batch is no multiple of the micro-batches of all
                processes.
        """
        own = self.per_device_train_batch_size * self.completions_per_row
        micro = own * self.world_size
        if self.generation_batch_size is None:
            self.steps_per_generation = (
                self.steps_per_generation or self.gradient_accumulation_steps
            )
            self.generation_batch_size = micro * self.steps_per_generation
        elif self.steps_per_generation is not None:
            raise BadValue(
                "generation_batch_size and steps_per_generation are both set: "
                "leave one out, it follows from the other"
            )
        elif self.generation_batch_size % micro:
            raise BadValue(
                f"generation_batch_size={self.generation_batch_size} is no multiple of {micro}, "
                f"the {own} completions of a micro-batch times "
                f"{self.world_size} processes"
            )
        else:
            self.steps_per_generation = self.generation_batch_size // micro

    def check_groups(self) -> None:
        """Refuse a rollout, or an evaluation batch if there will be any, without whole groups.

        Raises:
            BadValue: the rollout or the batch does not hold whole groups.
        """
        size = self.rollout_size
        if size % self.num_generations:
            raise BadValue(
                f"generation_batch_size={size} is no multiple of "
                f"num_generations={self.num_generations}: a rollout must hold whole groups"
            )
        if self.do_eval and self.eval_strategy != "no":
            self.check_evaluation()

    def check_evaluation(self) -> None:
        """Refuse an evaluation batch that does not hold whole groups.

        Raises:
            BadValue: the batch of all processes is no multiple of the completions of a prompt.
        """
        per_prompt = self.generations_eval
        if self.per_device_eval_batch_size * self.world_size % per_prompt:
            raise BadValue(
                f"per_device_eval_batch_size={self.per_device_eval_batch_size} on "
                f"{self.world_size} processes is no multiple of the {per_prompt} completions "
                "of a prompt: an evaluation batch must hold whole groups"
            )

    def check_sampling(self) -> None:
        """Refuse keywords that the engine does not take, and values that leave nothing to draw.

        Another temperature than that of the log-probabilities is warned about.
        """
        keywords = self.generation_keywords
        check_keywords(self.rollout_engine, keywords)
        check_sampling(sampling_settings(self))
        if not self.heats_loss:
            return
        if keywords.get("temperature", self.temperature) != self.temperature:
            logger.warning_once(
                f"generation_kwargs={{'temperature': {keywords['temperature']}}} is of sampling "
                f"alone: log-probabilities use temperature={self.temperature}; "
                "set the field instead"
            )

    def check_policies(self) -> None:
        """Refuse samplers and references that contradict each other.

        Raises:
            BadValue: `sync_ref_model` moves a reference that is not read, or that answers are
                sampled from.
        """
        if self.sync_ref_model and not self.reads_reference:
            raise BadValue(
                "sync_ref_model=True moves a reference that beta=0.0 never reads: "
                "set beta above 0 or leave sync_ref_model at False"
            )
        if self.sync_ref_model and not self.samples_policy:
            raise BadValue(
                f"rollout_policy={self.rollout_policy!r} samples from the frozen starting model: "
                "leave sync_ref_model at False"
            )

    def check_selection(self) -> None:
        """Refuse settings that the selection does not read, and a part that is no part of a group.

        A group of one has no spread.

        Raises:
            BadValue: a setting is not read, does not fit the group, or is out of range.
        """
        self.refuse_idle("rollout_selection", SELECTIONS)
        kept, group = self.selection_kept, self.num_generations
        if SELECTIONS[self.rollout_selection].compares and group < 2:
            raise BadValue(
                f"rollout_selection={self.rollout_selection!r} keeps groups whose rewards differ, "
                f"and num_generations={group} is a single completion: sample more of each prompt, "
                "or leave it out"
            )
        if self.selects_by("selection_kept") and not (kept and 2 <= kept <= group):
            raise BadValue(
                f"selection_kept={kept} with rollout_selection={self.rollout_selection!r}: expected"
                f" 2 to num_generations={group}, the completions of a group"
            )
        if self.prompt_retirement is not None and not 0 < self.prompt_retirement <= 1:
            raise BadValue(
                f"prompt_retirement={self.prompt_retirement}: expected above 0 and at most 1"
            )
