"""Settings of group relative policy optimisation, with TRL 1.16's names and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from core.configs.base import BaseConfig, padding_multiple
from core.configs.option import option
from eval.errors import BadValue

NO_ENTROPY = "the loss has no entropy term"
NO_LOSS = "its loss type is not implemented"
NO_HUB = "nothing is uploaded"
NO_PAGED = "the engine is chosen by `rollout_engine`, such as 'hf-cb'"
NO_TOOLS = "no tools are called"
NO_OFF_POLICY = "off-policy sequences are not masked"


@dataclass
class GRPOConfig(BaseConfig):
    """Settings of `GRPOTrainer`: generation, rewards, advantages, loss and reference model.

    `advantage_estimator`, `rollout_policy`, `rollout_engine` and `token_normalizer` are not TRL's.
    At their defaults the random numbers of sampling differ, and loss_type='dapo', the default,
    where an optimizer step takes several rollouts.
    """

    _VALID_DICT_FIELDS: ClassVar[list[str]] = [
        *BaseConfig._VALID_DICT_FIELDS,
        "model_init_kwargs",
        "transformers_continuous_batching_config",
        "generation_kwargs",
        "chat_template_kwargs",
    ]

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {
        "cast_lm_head_to_fp32": "the head keeps the model's precision",
        "ds3_gather_for_generation": "parameters are always gathered for generation",
        "generation_kwargs": "set `temperature`, `top_p`, `top_k`, `min_p`, `repetition_penalty`",
        "cache_implementation": NO_PAGED,
        "vllm_structured_outputs_regex": "completions are sampled freely",
        "vllm_importance_sampling_cap": "set `vllm_importance_sampling_clip_max`",
        "sapo_temperature_neg": NO_LOSS,
        "sapo_temperature_pos": NO_LOSS,
        "vespo_k_pos": NO_LOSS,
        "vespo_lambda_pos": NO_LOSS,
        "vespo_k_neg": NO_LOSS,
        "vespo_lambda_neg": NO_LOSS,
        "top_entropy_quantile": "every token is trained on",
        "entropy_coef": NO_ENTROPY,
        "use_adaptive_entropy": NO_ENTROPY,
        "entropy_coef_min": NO_ENTROPY,
        "entropy_coef_max": NO_ENTROPY,
        "entropy_coef_delta": NO_ENTROPY,
        "entropy_target": NO_ENTROPY,
        "max_tool_calling_iterations": NO_TOOLS,
        "off_policy_mask_threshold": NO_OFF_POLICY,
        "log_completions_hub_repo": NO_HUB,
        "use_transformers_continuous_batching": NO_PAGED,
        "transformers_continuous_batching_config": NO_PAGED,
        "use_transformers_paged": NO_PAGED,
        "auto_find_batch_size": "a smaller batch would break the groups",
    }
    CHOICES: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "loss_type": ("grpo", "bnpo", "dr_grpo", "dapo"),
        "importance_sampling_level": ("token", "sequence"),
        "scale_rewards": ("group", "batch", "none"),
        "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
        "advantage_estimator": ("group", "process", "correct"),
        "rollout_policy": ("policy", "reference"),
        "rollout_engine": ("native", "equal", "hf", "hf-cb", "vllm"),
        "token_normalizer": ("step", "rollout"),
        "vllm_mode": ("colocate", "server"),
        "vllm_model_impl": ("vllm", "transformers"),
        "vllm_importance_sampling_mode": (
            "token_truncate",
            "token_mask",
            "sequence_truncate",
            "sequence_mask",
        ),
    }
    ALIASES: ClassVar[Mapping[str, Mapping[object, object]]] = {
        "scale_rewards": {True: "group", False: "none", "true": "group", "false": "none"},
    }
    AT_LEAST: ClassVar[Mapping[str, float]] = {
        "router_aux_loss_coef": 0.0,
        "num_generations": 2,
        "num_generations_eval": 1,
        "max_completion_length": 1,
        "num_iterations": 1,
        "steps_per_generation": 1,
        "generation_batch_size": 1,
        "top_k": 0,
        "beta": 0.0,
        "epsilon": 0.0,
        "epsilon_high": 0.0,
        "delta": 0.0,
        "ref_model_mixup_alpha": 0.0,
        "ref_model_sync_steps": 1,
        "vllm_server_timeout": 0.1,
        "vllm_max_model_length": 1,
        "vllm_tensor_parallel_size": 1,
        "vllm_importance_sampling_clip_max": 0.0,
        "vllm_importance_sampling_clip_min": 0.0,
    }

    TRL_WAYS: ClassVar[Mapping[str, object]] = {"token_normalizer": "rollout"}

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
    generation_kwargs: dict[str, Any] | str | None = option(None, "More sampling keywords.")
    chat_template_kwargs: dict[str, Any] | str | None = option(None, "Chat template keywords.")
    repetition_penalty: float = option(1.0, "Penalty on tokens that have occurred.")
    cache_implementation: str | None = option(None, "Cache of `generate`.")

    use_vllm: bool = option(False, "Generate with vLLM; the same as rollout_engine='vllm'.")
    vllm_mode: str = option("colocate", "Where vLLM runs: a 'server', or 'colocate', here.")
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

    beta: float = option(0.0, "Weight of the KL to the reference; 0 loads no reference.")
    num_iterations: int = option(1, "Passes over one rollout (mu of arXiv 2402.03300).")
    epsilon: float = option(0.2, "Lower clip width of the ratio.")
    delta: float | None = option(None, "Cap of the ratio before the clip; unset, none.")
    epsilon_high: float | None = option(None, "Upper clip width; unset, `epsilon`.")
    sapo_temperature_neg: float = option(1.05, "SAPO's temperature of negative advantages.")
    sapo_temperature_pos: float = option(1.0, "SAPO's temperature of positive advantages.")
    vespo_k_pos: float = option(2.0, "VESPO's k of positive advantages.")
    vespo_lambda_pos: float = option(3.0, "VESPO's lambda of positive advantages.")
    vespo_k_neg: float = option(3.0, "VESPO's k of negative advantages.")
    vespo_lambda_neg: float = option(2.0, "VESPO's lambda of negative advantages.")
    importance_sampling_level: str = option("token", "One ratio per 'token' or 'sequence'.")
    reward_weights: list[float] | None = option(None, "Weight of each reward; unset, 1.")
    multi_objective_aggregation: str = option(
        "sum_then_normalize", "Whether rewards are summed before or after they are normalised."
    )
    scale_rewards: str = option("group", "Divide by the std of the 'group', the 'batch' or 'none'.")
    loss_type: str = option(
        "dapo", "Surrogate and normaliser: grpo, bnpo, dr_grpo or dapo; see `token_normalizer`."
    )
    mask_truncated_completions: bool = option(False, "Leave cut completions out of the loss.")
    sync_ref_model: bool = option(False, "Move the reference towards the policy.")
    ref_model_mixup_alpha: float = option(0.6, "Share of the policy in the moved reference.")
    ref_model_sync_steps: int = option(512, "Optimizer steps between two moves.")
    top_entropy_quantile: float = option(1.0, "Train on this share of most uncertain tokens.")
    entropy_coef: float = option(0.0, "Weight of the entropy bonus.")
    use_adaptive_entropy: bool = option(False, "Steer the entropy bonus to a target.")
    entropy_coef_min: float = option(0.0, "Least adaptive weight.")
    entropy_coef_max: float = option(1.0, "Greatest adaptive weight.")
    entropy_coef_delta: float = option(0.005, "Step of the adaptive weight.")
    entropy_target: float = option(0.2, "Entropy that the adaptive weight aims at.")
    max_tool_calling_iterations: int | None = option(None, "Rounds of tool calls.")
    vllm_importance_sampling_correction: bool = option(
        True, "Weigh losses by the trainer's probabilities over vLLM's."
    )
    vllm_importance_sampling_mode: str = option(
        "sequence_mask",
        "That ratio of a 'token' or 'sequence', '_truncate'd to its limits or '_mask'ed outside.",
    )
    vllm_importance_sampling_clip_max: float | None = option(3.0, "Its upper limit.")
    vllm_importance_sampling_clip_min: float | None = option(None, "Its lower limit.")
    off_policy_mask_threshold: float | None = option(None, "KL above which a sequence is masked.")
    use_bias_correction_kl: bool = option(True, "Multiply the KL estimate by the ratio.")

    log_completions: bool = option(False, "Write sampled completions to parquet files.")
    log_multimodal: bool = option(True, "Log images too; there are none.")
    num_completions_to_print: int | None = option(None, "Completions printed; unset, all.")
    log_unique_prompts: bool = option(False, "Log one completion of each prompt.")
    log_completions_hub_repo: str | None = option(None, "Hub repository of the completions.")
    use_transformers_continuous_batching: bool = option(False, "Generate with paged attention.")
    transformers_continuous_batching_config: dict[str, Any] | str | None = option(
        None, "Keywords of paged generation."
    )
    use_transformers_paged: bool = option(False, "Deprecated in TRL.")
    vllm_importance_sampling_cap: float | None = option(None, "Deprecated in TRL.")

    advantage_estimator: str = option(
        "group",
        "'group': reward minus the group's mean; 'process': summed step rewards (arXiv 2402.03300 "
        "s4.1.3); 'correct': 1 for a positive reward, else 0 (rejection-sampling fine-tuning).",
    )
    rollout_policy: str = option("policy", "Sample from the 'policy' or the frozen 'reference'.")
    rollout_engine: str = option(
        "native",
        "What decodes: 'native'; 'equal', which draws the very tokens of transformers; 'hf', "
        "transformers' `generate`; 'hf-cb', its continuous batching; 'vllm'.",
    )
    token_normalizer: str = option(
        "step",
        "Tokens that 'dapo' divides by: those of the optimizer 'step', so that all weigh the same "
        "(arXiv 2503.14476 eq. 12), or of each 'rollout' in it, as TRL does. It matters where a "
        "step takes several rollouts: gradient_accumulation_steps above steps_per_generation.",
    )

    def resolve(self) -> None:
        """As of every trainer; then the rollout's size, and what has to fit together."""
        super().resolve()
        self.pad_to_multiple_of = padding_multiple(self.pad_to_multiple_of, self.device.type)
        self.resolve_rollout_size()
        self.check_groups()
        self.check_sampling()
        self.check_policies()
        self.check_vllm()

    @property
    def rollout_size(self) -> int:
        """Completions of one rollout, over all processes."""
        return self.generation_batch_size or 0  # set when the settings were built

    @property
    def upper_epsilon(self) -> float:
        """The upper clip width, which unset is the lower one."""
        return self.epsilon if self.epsilon_high is None else self.epsilon_high

    @property
    def generations_eval(self) -> int:
        """Completions of one prompt in evaluation, which unset are those in training."""
        return self.num_generations_eval or self.num_generations

    @property
    def rollout_parts(self) -> int:
        """Micro-batches that one rollout is cut into on each process."""
        return self.steps_per_generation or 1  # set when the settings were built

    @property
    def rollout_uses(self) -> int:
        """Micro-batches that one rollout feeds on each process, every iteration counted."""
        return self.rollout_parts * self.num_iterations

    @property
    def mixes_rollouts(self) -> bool:
        """Whether an optimizer step takes micro-batches of several rollouts."""
        return self.rollout_uses % self.gradient_accumulation_steps != 0

    @property
    def corrects_sampling(self) -> bool:
        """Whether losses are weighed by the ratio to the probabilities of vLLM."""
        return self.use_vllm and self.vllm_importance_sampling_correction

    @property
    def padding(self) -> int | None:
        """What token widths are padded to a multiple of."""
        return self.pad_to_multiple_of if isinstance(self.pad_to_multiple_of, int) else None

    @property
    def template(self) -> dict[str, Any]:
        """Keywords of the chat template."""
        return (
            dict(self.chat_template_kwargs) if isinstance(self.chat_template_kwargs, dict) else {}
        )

    def resolve_rollout_size(self) -> None:
        """Fill whichever of `generation_batch_size` and `steps_per_generation` is unset."""
        micro = self.per_device_train_batch_size * self.world_size
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
                f"the {self.per_device_train_batch_size} completions of a micro-batch times "
                f"{self.world_size} processes"
            )
        else:
            self.steps_per_generation = self.generation_batch_size // micro

    def check_groups(self) -> None:
        """Refuse a rollout, or an evaluation batch if there will be any, without whole groups."""
        size = self.rollout_size
        if size % self.num_generations:
            raise BadValue(
                f"generation_batch_size={size} is no multiple of "
                f"num_generations={self.num_generations}: a rollout must hold whole groups"
            )
        if self.do_eval and self.eval_strategy != "no":
            self.check_evaluation()
        if self.advantage_estimator == "process" and self.multi_objective_aggregation != (
            "sum_then_normalize"
        ):
            raise BadValue(
                "advantage_estimator='process' normalises step rewards itself: "
                "leave multi_objective_aggregation at 'sum_then_normalize'"
            )

    def check_evaluation(self) -> None:
        """Refuse an evaluation batch that does not hold whole groups."""
        per_prompt = self.generations_eval
        if self.per_device_eval_batch_size * self.world_size % per_prompt:
            raise BadValue(
                f"per_device_eval_batch_size={self.per_device_eval_batch_size} on "
                f"{self.world_size} processes is no multiple of the {per_prompt} completions "
                "of a prompt: an evaluation batch must hold whole groups"
            )

    def check_sampling(self) -> None:
        """Refuse sampling parameters that leave no distribution to sample from."""
        if not self.temperature > 0:
            raise BadValue(f"temperature={self.temperature}: expected above 0, GRPO samples")
        if not 0 < self.top_p <= 1:
            raise BadValue(f"top_p={self.top_p}: expected above 0 and at most 1")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise BadValue(f"min_p={self.min_p}: expected 0 to 1")
        if not self.repetition_penalty > 0:
            raise BadValue(f"repetition_penalty={self.repetition_penalty}: expected above 0")

    def check_policies(self) -> None:
        """Refuse samplers and references that contradict each other."""
        if self.sync_ref_model and self.beta == 0.0:
            raise BadValue(
                "sync_ref_model=True moves a reference that beta=0.0 never reads: "
                "set beta above 0 or leave sync_ref_model at False"
            )
        if self.sync_ref_model and self.rollout_policy == "reference":
            raise BadValue(
                "rollout_policy='reference' samples from the frozen starting model: "
                "leave sync_ref_model at False"
            )

    def check_vllm(self) -> None:
        """Let `use_vllm` and `rollout_engine` agree; refuse what vLLM is not started with here."""
        if self.use_vllm and self.rollout_engine not in ("native", "vllm"):
            raise BadValue(
                f"use_vllm=True and rollout_engine={self.rollout_engine!r}: leave one of them out"
            )
        self.use_vllm = self.use_vllm or self.rollout_engine == "vllm"
        self.rollout_engine = "vllm" if self.use_vllm else self.rollout_engine
        if self.use_vllm and self.vllm_mode == "colocate" and self.vllm_tensor_parallel_size > 1:
            raise BadValue(
                f"vllm_tensor_parallel_size={self.vllm_tensor_parallel_size} with "
                "vllm_mode='colocate' is not supported: a server takes --tensor-parallel-size"
            )
        low, high = self.vllm_importance_sampling_clip_min, self.vllm_importance_sampling_clip_max
        if low is not None and high is not None and low >= high:
            raise BadValue(
                f"vllm_importance_sampling_clip_min={low} is not below "
                f"vllm_importance_sampling_clip_max={high}"
            )
        bounded = low is not None or high is not None
        truncates = self.vllm_importance_sampling_mode.endswith("_truncate")
        if self.vllm_importance_sampling_correction and truncates and not bounded:
            raise BadValue(
                f"vllm_importance_sampling_mode={self.vllm_importance_sampling_mode!r} without "
                "limits: set vllm_importance_sampling_clip_max or vllm_importance_sampling_clip_min"
            )
