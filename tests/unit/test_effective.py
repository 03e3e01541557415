"""A training's key holds what can act and nothing else, field by field of the table."""

from dataclasses import fields, replace

import pytest
from datasets import Dataset
from grpo_runs import weights

from core import GRPOConfig, SDPOConfig, SFTConfig, SFTTrainer
from core.configs.idle import IDLE, effective_fields
from core.paper import in_regime
from core.settings.effective import effective
from core.settings.layers import NO_SETTINGS, Sourced
from core.settings.resolve import resolve
from core.settings.run_settings import NEUTRAL
from core.stages.chain import Chain
from core.stages.training import TIMES
from eval.errors import BadValue
from papers.aot import PAPER as AOT
from papers.deepseekmath_grpo import PAPER

# For each row of the table: settings that leave it idle, others for its fields, settings that do
# not leave it idle (none if there are no such).
EVALUATED = {"eval_strategy": "epoch", "per_device_eval_batch_size": 16}
EVALUATION = {
    "batch_eval_metrics": True,
    "eval_accumulation_steps": 3,
    "eval_delay": 1,
    "eval_do_concat_batches": False,
    "eval_steps": 2,
    "eval_use_gather_object": True,
    "greater_is_better": True,
    "include_for_metrics": ["inputs"],
    "metric_for_best_model": "loss",
    "per_device_eval_batch_size": 32,
    "prediction_loss_only": True,
}
VLLM = {
    "vllm_mode": "colocate",
    "vllm_model_impl": "transformers",
    "vllm_enable_sleep_mode": True,
    "vllm_server_base_url": "http://nowhere:1",
    "vllm_server_host": "nowhere",
    "vllm_server_port": 1,
    "vllm_server_timeout": 1.0,
    "vllm_group_port": 1,
    "vllm_gpu_memory_utilization": 0.5,
    "vllm_max_model_length": 7,
    "vllm_tensor_parallel_size": 2,
}
CORRECTION = {
    "vllm_importance_sampling_mode": "token_mask",
    "vllm_importance_sampling_clip_max": 2.0,
    "vllm_importance_sampling_cap": 2.0,
    "vllm_importance_sampling_clip_min": 0.5,
}
CASES = {
    "num_train_epochs": ({}, {"num_train_epochs": 7.0}, {"max_steps": -1}),
    "warmup_steps": (
        {"lr_scheduler_type": "constant"},
        {"warmup_steps": 3},
        {"lr_scheduler_type": "linear"},
    ),
    "adam_*": (
        {"optim": "sgd"},
        {"adam_beta1": 0.5, "adam_beta2": 0.6, "adam_epsilon": 0.1},
        {"optim": "adamw_torch"},
    ),
    "gradient_checkpointing_kwargs": (
        {},
        {
            "gradient_checkpointing_kwargs": {"use_reentrant": True},
            "activation_checkpointing_kwargs": {"use_reentrant": True},
        },
        {"gradient_checkpointing": True},
    ),
    "logging_steps": (
        {"logging_strategy": "epoch"},
        {"logging_steps": 2},
        {"logging_strategy": "steps"},
    ),
    "liger_kernel_config": (
        {},
        {"liger_kernel_config": {"rope": False}},
        {"use_liger_kernel": True},
    ),
    "batch_eval_metrics": ({}, EVALUATION, EVALUATED),
    "num_generations_eval": (
        {},
        {"num_generations_eval": 2},
        EVALUATED,
    ),
    "log_multimodal": ({}, {"log_multimodal": False}, None),
    "log_unique_prompts": (
        {},
        {"log_unique_prompts": True, "num_completions_to_print": 1},
        {"log_completions": True},
    ),
    "vllm_[!i]*": ({}, VLLM, {"use_vllm": True, "vllm_mode": "server"}),
    "vllm_importance_sampling_correction": (
        {},
        {"vllm_importance_sampling_correction": False},
        {"rollout_bits": 4},
    ),
    "vllm_importance_sampling_mode": (
        {"compare_sampler": True, "vllm_importance_sampling_correction": False},
        CORRECTION,
        {"compare_sampler": True},
    ),
    "compare_sampler": ({"rollout_bits": 4}, {"compare_sampler": True}, {}),
    "epsilon": ({}, {"epsilon": 0.0, "epsilon_high": 0.01}, {"num_iterations": 2}),
    "delta": ({}, {"delta": 1.5}, {"num_iterations": 2}),
    "use_bias_correction_kl": ({"beta": 0.0}, {"use_bias_correction_kl": True}, {"beta": 0.1}),
    "kl_estimator": ({"beta": 0.0}, {"kl_estimator": "k2"}, {"beta": 0.1}),
    "ref_model_*": (
        {"beta": 0.1},
        {"ref_model_mixup_alpha": 1.0, "ref_model_sync_steps": 1},
        {"beta": 0.1, "sync_ref_model": True},
    ),
    "scale_rewards": (
        {"multi_objective_aggregation": "normalize_then_sum"},
        {"scale_rewards": "none"},
        {"multi_objective_aggregation": "sum_then_normalize"},
    ),
    "token_normalizer": (
        {"loss_type": "dapo"},
        {"token_normalizer": "rollout"},
        {"loss_type": "dapo", "gradient_accumulation_steps": 2, "steps_per_generation": 1},
    ),
    "semantics": ({}, {"semantics": "trl==1.16"}, None),
    "loss_aggregate": (
        {"loss_type": "dapo"},
        {"loss_aggregate": "global_token_mean"},
        {"loss_type": "grpo"},
    ),
    "top_entropy_tokens": (
        {},
        {"top_entropy_tokens": "least", "top_entropy_normalizer": "kept"},
        {"top_entropy_quantile": 0.5},
    ),
}
SFT_CASES = {
    "packing_strategy": ({}, {"packing_strategy": "wrapped"}, {"packing": True}),
    "length_column_name": (
        {},
        {"length_column_name": "answer"},
        {"train_sampling_strategy": "group_by_length"},
    ),
    "eval_packing": ({}, {"eval_packing": True}, {"eval_strategy": "epoch"}),
}
# As `CASES`, of fields that are refused where they are idle.
REFUSED = {
    "selection_reward": (
        {"rollout_selection": "all"},
        {"selection_reward": "accuracy"},
        {"rollout_selection": "varied"},
    ),
    "selection_kept": (
        {"rollout_selection": "all"},
        {"selection_kept": 2},
        {"rollout_selection": "shortest", "selection_kept": 4},
    ),
    "selection_draws": (
        {"rollout_selection": "varied"},
        {"selection_draws": 3, "selection_fills_up": True},
        {"rollout_selection": "filled"},
    ),
}
# Of a student's own teacher, refused where they are idle, too: such settings, and the fields.
OF_TEACHERS = {
    "distillation_topk": (
        {"distillation_mode": "full_logits"},
        {"distillation_topk": 5, "distillation_add_tail": True},
    ),
    "teacher_update_rate": (
        {"teacher_model_kind": "live"},
        {"teacher_update_rate": 0.5, "teacher_sync_steps": 2},
    ),
}
# Of fields that do not count while they are unset: what they may be set to.
UNSET = {
    "kl_coef": {"kl_coef": 0.1, "beta": 0.0, "advantage_estimator": "leave_one_out"},
    "prompt_retirement": {"prompt_retirement": 0.9},
    "rollout_lag": {"rollout_lag": 2},
    "rollout_bits": {"rollout_bits": 4},
    "keep_sampling_mask": {"keep_sampling_mask": True, "top_k": 5},
}

# Fields of preparations: what has them, the value that leaves them out, and another one.
PAIRED: dict[str, object] = {"family": "own-pairs"}
SCORED = {"family": "rejection-sampling", "roles": {"scorer": "pocket-instruct"}}
OF_PREPARATIONS = {
    "win_rates": (PAIRED, False, True),
    "shuffles_rejected": (PAIRED, False, True),
    "step_separator": (SCORED, None, ";"),
}


@pytest.mark.parametrize("name", OF_PREPARATIONS)
def test_a_field_of_a_preparation_counts_once_it_is_set(name):
    given, idle, other = OF_PREPARATIONS[name]

    def settings(**changes):
        arm = in_regime("choice", num_prompts=9, **changes)
        made = {**given, "per_seed": True, **arm}
        paper = replace(AOT, preparations={"made": made})
        return effective(resolve(paper, arm="made"))["config"]

    assert name not in settings()
    assert settings(**{name: idle}) == settings()
    assert settings(**{name: other}) == settings() | {name: other}


def key(**settings):
    return Chain(resolve(PAPER, arguments=arguments(settings))).train.key


def arguments(settings):
    return [f"{name}={value}" for name, value in settings.items()]


def told(trainer):
    """All that a training gives: its weights, and its log less the times."""
    trainer.train()
    rows = trainer.state.log_history
    logged = [{n: v for n, v in row.items() if not any(t in n for t in TIMES)} for row in rows]
    return weights(trainer.model), str(logged)


def test_every_field_of_every_row_is_tried():
    first = [row.fields[0] for row in IDLE]
    tried = [*CASES, *SFT_CASES, *REFUSED, *OF_TEACHERS, *UNSET, *OF_PREPARATIONS]
    assert sorted(first) == sorted(tried)
    for config, cases in ((GRPOConfig, CASES | REFUSED), (SFTConfig, SFT_CASES)):
        names = [f.name for f in fields(config) if f.init and f.name not in config.UNSUPPORTED]
        for row in IDLE:
            if row.fields[0] in cases:
                _, changes, _ = cases[row.fields[0]]
                assert set(changes) == {name for name in names if name in row}


@pytest.mark.parametrize("row", CASES)
def test_an_idle_field_changes_neither_the_key_nor_a_bit(row, make_grpo):
    idle, changes, _ = CASES[row]
    assert key(**idle) == key(**idle, **changes)
    one, other = (told(make_grpo(**settings)) for settings in (idle, idle | changes))
    assert one[0].equal(other[0])
    assert one[1] == other[1]


@pytest.mark.parametrize("weights", ["[1.0]", "[1]", "[]"])
def test_rewards_that_weigh_one_each_weigh_as_if_nothing_were_said(weights):
    assert key(reward_weights=weights) == key() != key(reward_weights="[2.0]")


def test_a_weight_that_no_reward_has_is_refused_before_anything_runs():
    with pytest.raises(BadValue, match="reward_weights has 2 entries for 1 rewards"):
        key(reward_weights="[1, 1]")


@pytest.mark.parametrize("row", REFUSED)
def test_a_field_that_is_refused_where_it_is_idle_does_not_count_there(row):
    idle, changes, _ = REFUSED[row]
    assert not set(changes) & set(effective(resolve(PAPER, arguments=arguments(idle)))["config"])
    for name, value in changes.items():
        with pytest.raises(BadValue, match=f"{name}=.* does not take it"):
            key(**idle, **{name: value})


@pytest.mark.parametrize("row", OF_TEACHERS)
def test_a_field_of_another_teacher_is_refused_and_does_not_count(row, tmp_path):
    idle, changes = OF_TEACHERS[row]
    given = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", **idle}
    assert not set(changes) & effective_fields(SDPOConfig(**given)).keys()
    for name, value in changes.items():
        with pytest.raises(BadValue, match=f"{name}=.* does not take it"):
            SDPOConfig(**given, **{name: value})


@pytest.mark.parametrize("name", UNSET)
def test_a_field_that_is_unset_does_not_count(name):
    assert name not in effective(resolve(PAPER))["config"]
    assert key(**UNSET[name]) != key()


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (row, n)
        for row, (_, new, act) in (CASES | REFUSED).items()
        if act
        for n in new
        if n not in NEUTRAL
    ],
)
def test_a_field_that_can_act_changes_the_key(row, name):
    _, changes, active = (CASES | REFUSED)[row]
    assert key(**active) != key(**active | {name: changes[name]})


@pytest.fixture
def supervise(build_llama, tiny_tokenizer, tmp_path):
    """Train a fresh tiny Llama on a few texts."""

    def train(**settings):
        config = SFTConfig(str(tmp_path), **{**SUPERVISED, **settings})
        rows = Dataset.from_dict({"text": [f"{i} + {i} = {2 * i}" for i in range(8)]})
        tokenizer = {"processing_class": tiny_tokenizer}
        return told(SFTTrainer(build_llama(), config, train_dataset=rows, **tokenizer))

    return train


SUPERVISED = {
    "max_steps": 2,
    "logging_steps": 1,
    "use_cpu": True,
    "bf16": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
}


@pytest.mark.parametrize("row", SFT_CASES)
def test_an_idle_field_of_supervised_training_does_not_count(row, supervise, tmp_path):
    idle, changes, active = SFT_CASES[row]

    def counted(settings):
        return effective_fields(SFTConfig(str(tmp_path), **{**SUPERVISED, **settings}))

    assert counted(idle) == counted(idle | changes)
    assert counted(active) != counted(active | changes)
    one, other = supervise(**idle), supervise(**idle | changes)
    assert one[0].equal(other[0])
    assert one[1] == other[1]


@pytest.mark.parametrize("name", [f.name for f in fields(GRPOConfig) if f.init])
def test_a_default_that_is_written_out_is_the_same_training(name, resolved):
    """The value that the config comes to, said by the paper."""
    value = getattr(resolved.preview(), name)
    sized = {"generation_batch_size": "steps_per_generation"}  # one follows from the other
    values = {n: v for n, v in resolved.values.items() if n != sized.get(name)}
    said = replace(resolved, values={**values, name: Sourced(value, "s1")})
    assert effective(said) == effective(resolved)


@pytest.fixture
def resolved():
    return resolve(PAPER)


@pytest.mark.parametrize(("unset", "set_"), [({}, {"epsilon_high": 0.2})])
def test_what_an_unset_field_stands_for_is_the_same_training(unset, set_):
    moving = {"num_iterations": 2}
    assert key(**moving, **unset) == key(**moving, **set_)


def test_a_policy_that_does_not_move_leaves_nobody_off_policy(make_grpo):
    masked = {"off_policy_mask_threshold": 0.0}
    assert key(**masked) == key()
    assert told(make_grpo(**masked))[1] == told(make_grpo())[1]
    assert key(num_iterations=2, **masked) != key(num_iterations=2)


def test_equal_trainings_of_other_papers_and_arms_are_one():
    other = replace(PAPER, slug="other", arms={"other": {}}, base=None)
    assert Chain(resolve(other)).train.key == Chain(resolve(PAPER)).train.key


def test_every_other_field_of_the_config_counts(resolved):
    names = {f.name for f in fields(GRPOConfig) if f.init}
    idle = {n for n in names if any(n in row and row.condition(resolved.preview()) for row in IDLE)}
    assert set(effective(resolved)["config"]) == names - idle - NEUTRAL - NO_SETTINGS.keys()


@pytest.mark.parametrize(
    ("idle", "change"),
    [
        ({"heldout_problems": 0}, {"heldout_every": 3}),
        ({"heldout_problems": 0}, {"eval_max_tokens": 12}),
        ({}, {"eval_limit": 7}),
        ({}, {"at_k_samples": 5, "at_k_limit": 3, "at_k_temperature": 0.9}),
        ({}, {"report_to": "wandb", "save_steps": 1, "run_name": "mine"}),
    ],
)
def test_what_surrounds_a_training_without_a_part_in_it_does_not_count(idle, change):
    assert key(**idle) == key(**idle, **change)


def test_the_precision_and_the_device_that_were_asked_for_count():
    asked = ({}, {"bf16": True}, {"use_cpu": False}, {"fp16": True})
    assert len({key(**each) for each in asked}) == len(asked)
    found = resolve(PAPER, scale="gpu")
    assert effective(found)["config"]["bf16"] is True  # unset
