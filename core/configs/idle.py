"""Settings that have no effect beside others, which a training therefore does not depend on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Idle:
    """Fields, and the condition on other settings under which they have no effect.

    Names are patterns: `*` stands for any ending, `[al]` for one of these letters, `[!i]` for any
    other.
    """

    fields: tuple[str, ...]
    condition: Callable[[Any], bool]  # Any: of whichever config has the fields

    def __contains__(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.fields)


def ratio_is_one(config: Any) -> bool:  # Any: as above
    """Return whether all updates of a rollout are done before the policy moves."""
    return config.gradient_accumulation_steps % config.rollout_uses == 0


# Of a trainer's config. A row counts for the configs that have one of its fields.
IDLE: tuple[Idle, ...] = (
    Idle(("num_train_epochs",), lambda c: c.max_steps > 0),
    Idle(("warmup_steps",), lambda c: c.lr_scheduler_type == "constant"),
    Idle(("adam_*",), lambda c: c.optim in ("sgd", "adafactor")),
    Idle(
        ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs"),
        lambda c: not c.gradient_checkpointing,
    ),
    Idle(("logging_steps",), lambda c: c.logging_strategy != "steps"),
    Idle(("length_column_name",), lambda c: c.train_sampling_strategy != "group_by_length"),
    Idle(("liger_kernel_config",), lambda c: not c.use_liger_kernel),
    Idle(
        (
            "batch_eval_metrics",
            "eval_accumulation_steps",
            "eval_delay",
            "eval_do_concat_batches",
            "eval_steps",
            "eval_use_gather_object",
            "greater_is_better",
            "include_for_metrics",
            "metric_for_best_model",
            "per_device_eval_batch_size",
            "prediction_loss_only",
        ),
        lambda c: c.eval_strategy == "no",
    ),
    Idle(("num_generations_eval",), lambda c: c.eval_strategy == "no"),
    Idle(("eval_packing",), lambda c: c.eval_strategy == "no"),
    Idle(("step_separator",), lambda c: c.step_separator is None),
    Idle(("win_rates",), lambda c: not c.win_rates),
    Idle(("shuffles_rejected",), lambda c: not c.shuffles_rejected),
    Idle(("packing_strategy",), lambda c: not c.packing),
    Idle(("log_multimodal",), lambda _: True),  # there are no images
    Idle(("log_unique_prompts", "num_completions_to_print"), lambda c: not c.log_completions),
    Idle(("vllm_[!i]*",), lambda c: not c.use_vllm),  # its own; those of a correction follow
    Idle(("vllm_importance_sampling_correction",), lambda c: not c.compares_sampler),
    Idle(
        ("vllm_importance_sampling_mode", "vllm_importance_sampling_c[al]*"),
        lambda c: not c.corrects_sampling,
    ),
    Idle(("rollout_lag",), lambda c: c.rollout_lag == 0),
    Idle(("rollout_bits",), lambda c: c.rollout_bits is None),
    Idle(("compare_sampler",), lambda c: not c.compare_sampler or c.use_vllm or c.alters_weights),
    Idle(("keep_sampling_mask",), lambda c: not c.keep_sampling_mask),
    Idle(("epsilon", "epsilon_high", "distillation_is_clip"), ratio_is_one),
    Idle(
        ("distillation_topk", "distillation_add_tail"),
        lambda c: c.distillation_mode != "topk_logits",
    ),
    Idle(("teacher_update_rate", "teacher_sync_steps"), lambda c: c.teacher_model_kind != "ema"),
    Idle(("delta",), lambda c: ratio_is_one(c) and (c.delta is None or c.delta >= 1)),
    Idle(("use_bias_correction_kl",), lambda c: not c.penalises_kl),
    Idle(("kl_estimator",), lambda c: not (c.penalises_kl and c.is_set("kl_estimator"))),
    Idle(("kl_coef",), lambda c: c.kl_coef == 0),
    Idle(("ref_model_*",), lambda c: not c.sync_ref_model),
    Idle(("scale_rewards",), lambda c: not c.scales_rewards),
    Idle(("semantics",), lambda _: True),  # acts by the defaults that it gives to others
    Idle(("token_normalizer",), lambda c: not c.counts_tokens),
    Idle(("loss_aggregate",), lambda c: not c.has_other_aggregate),
    Idle(("top_entropy_tokens", "top_entropy_normalizer"), lambda c: not c.chooses_tokens),
    Idle(("selection_reward",), lambda c: not c.selects_by("selection_reward")),
    Idle(("selection_kept",), lambda c: not c.selects_by("selection_kept")),
    Idle(("prompt_retirement",), lambda c: c.prompt_retirement is None),
    Idle(("selection_draws", "selection_fills_up"), lambda c: not c.selects_by("selection_draws")),
)
# Fields of logging, storage and server addresses, on which the numbers of a training do not depend;
# records do not have them.
WATCHED = frozenset(
    {
        "dataloader_pin_memory",
        "dataset_num_proc",
        "ddp_timeout",
        "disable_tqdm",
        "do_predict",
        "do_train",
        "enable_jit_checkpoint",
        "hub_always_push",
        "hub_model_id",
        "hub_private_repo",
        "hub_revision",
        "hub_strategy",
        "hub_token",
        "local_rank",
        "log_level",
        "log_level_replica",
        "log_on_each_node",
        "logging_dir",
        "output_dir",
        "project",
        "report_to",
        "run_name",
        "save_on_each_node",
        "save_steps",
        "save_strategy",
        "save_total_limit",
        "trackio_bucket_id",
        "trackio_space_id",
        "trackio_static_space_id",
        "vllm_group_port",
        "vllm_server_base_url",
        "vllm_server_host",
        "vllm_server_port",
        "vllm_server_timeout",
    }
)
# Fields whose unset value can mean the same as a given one, and the property with the common value.
ACTS_BY: Mapping[str, str] = {
    "average_update_freq": "steps_between_averages",
    "epsilon_high": "upper_epsilon",
    "num_generations_eval": "generations_eval",
    "penalty_gamma": "penalty_discount",
    "off_policy_mask_threshold": "moves_off_policy",
    "reward_weights": "unequal_reward_weights",
}


def effective_fields(
    settings: Any, table: Sequence[Idle] = IDLE
) -> dict[str, object]:  # Any: as above
    """Return the fields of a dataclass that have an effect, each with its effective value."""
    rows = rows_with_fields(type(settings), tuple(table))
    idle = {
        name for row, idle_names in rows.items() if row.condition(settings) for name in idle_names
    }
    names = [field.name for field in fields(settings) if field.init and field.name not in idle]
    return {name: getattr(settings, ACTS_BY.get(name, name)) for name in names}


@cache
def rows_with_fields(kind: type, table: tuple[Idle, ...]) -> Mapping[Idle, Sequence[str]]:
    """Return the rows with fields of a dataclass, and the names of those fields."""
    names = [field.name for field in fields(kind) if field.init]
    names_by_row = {row: [name for name in names if name in row] for row in table}
    return {row: names for row, names in names_by_row.items() if names}
