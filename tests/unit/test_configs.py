from dataclasses import fields

import pytest
from trl.trainer.grpo_config import GRPOConfig as TheirGRPO
from trl.trainer.sft_config import SFTConfig as TheirSFT

from core import BCOConfig, DPOConfig, GRPOConfig, KTOConfig, PPOConfig, RewardConfig, SFTConfig
from core.configs.ranges import SHARED_RANGES
from eval.errors import BadValue

pytestmark = pytest.mark.versions

OURS = {
    "advantage_estimator",
    "compare_sampler",
    "keep_sampling_mask",
    "kl_coef",
    "kl_estimator",
    "loss_aggregate",
    "prompt_retirement",
    "rollout_bits",
    "rollout_engine",
    "rollout_lag",
    "rollout_policy",
    "rollout_selection",
    "selection_draws",
    "selection_fills_up",
    "selection_kept",
    "selection_reward",
    "semantics",
    "token_normalizer",
    "top_entropy_normalizer",
    "top_entropy_tokens",
}


def config(**changes):
    settings = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
    return GRPOConfig(**settings | changes)


@pytest.mark.parametrize(("ours", "theirs"), [(GRPOConfig, TheirGRPO), (SFTConfig, TheirSFT)])
def test_names_and_defaults_are_trls(ours, theirs):
    mine, peer = ({f.name: f.default for f in fields(c)} for c in (ours, theirs))
    assert set(mine) - set(peer) == (OURS if ours is GRPOConfig else {"mask_tool_outputs"})
    assert {name: mine[name] for name in peer} == peer


@pytest.mark.parametrize("ours", [GRPOConfig, SFTConfig, DPOConfig, KTOConfig, BCOConfig])
def test_tables_name_fields(ours):
    names = {f.name for f in fields(ours)}
    tables = (ours.UNSUPPORTED, ours.CHOICES, ours.AT_LEAST, *ours.SEMANTICS.values())
    assert names >= {name for table in tables for name in table}


def other_value(default):
    """A value that is not the default."""
    return {bool: not default, str: f"{default}-other"}.get(type(default), 7)


@pytest.mark.parametrize("name", GRPOConfig.UNSUPPORTED)
def test_unsupported_fields_are_refused_in_one_sentence(name):
    default = {f.name: f.default for f in fields(GRPOConfig)}[name]
    with pytest.raises(BadValue, match=f"GRPOConfig.{name}=.* is not supported: .*default") as e:
        config(**{name: other_value(default)})
    assert "\n" not in str(e.value)


ONE_COMPLETION = {"num_generations": 1, "advantage_estimator": "to_go", "beta": 0.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss_type": "ppo"}, "loss_type='ppo': expected one of 'grpo', 'bnpo'"),
        ({"importance_sampling_level": "word"}, "expected one of 'token', 'sequence'"),
        ({"loss_type": "gmpo", "importance_sampling_level": "sequence"}, "'gmpo' takes 'token'"),
        ({"loss_aggregate": "mean"}, "expected one of None, 'sequence_mean'"),
        ({"loss_type": "sapo", "sapo_temperature_neg": 0.0}, "expected above 0"),
        ({"off_policy_mask_threshold": -0.1}, "expected at least 0"),
        ({"top_entropy_quantile": 0.0}, "top_entropy_quantile=0.0: expected above 0, at most 1"),
        (
            {
                "loss_type": "dr_grpo",
                "top_entropy_quantile": 0.2,
                "top_entropy_normalizer": "kept",
            },
            "loss_aggregate='constant_length' divides by no tokens that could be fewer",
        ),
        ({"entropy_target": 0.5}, "entropy_target=0.5 steers nothing: set use_adaptive_entropy"),
        (
            {"use_adaptive_entropy": True, "entropy_coef_min": 2.0},
            "entropy_coef_min=2.0 is above entropy_coef_max=1.0",
        ),
        (
            {"loss_type": "vespo", "use_vllm": True},
            "multiplies the ratios of tokens itself, expected 'token_truncate', 'token_mask'",
        ),
        ({"scale_rewards": "std"}, "expected one of 'group', 'batch', 'none'"),
        (
            {"num_generations": 1},
            "num_generations=1: advantage_estimator='group' compares completions of a prompt, "
            "expected at least 2",
        ),
        *(
            (
                ONE_COMPLETION | {"rollout_selection": name},
                f"rollout_selection='{name}' keeps groups whose rewards differ, and "
                "num_generations=1 is a single completion",
            )
            for name in ("varied", "filled")
        ),
        ({"report_to": "wandbb"}, "report_to='wandbb': expected one of none, all, "),
        ({"epsilon": -0.1}, "epsilon=-0.1: expected at least 0"),
        ({"beta": float("nan")}, "beta=nan: expected at least 0"),
        ({"max_completion_length": None}, "max_completion_length=None: expected at least 1"),
        ({"num_generations": None}, "num_generations=None: expected at least 1"),
        ({"max_completion_length": 0}, "max_completion_length=0: expected at least 1"),
        ({"temperature": 0.0}, "temperature=0.0: expected above 0"),
        ({"top_p": 2.0}, "top_p=2.0: expected above 0 and at most 1"),
        ({"top_p": 0.0}, "top_p=0.0: expected above 0 and at most 1"),
        ({"min_p": 7.0}, "min_p=7.0: expected 0 to 1"),
        ({"repetition_penalty": -1.0}, "repetition_penalty=-1.0: expected above 0"),
        ({"num_generations": 3}, "generation_batch_size=8 is no multiple of num_generations=3"),
        ({"generation_batch_size": 12}, "generation_batch_size=12 is no multiple of 8"),
        ({"generation_batch_size": 8, "steps_per_generation": 1}, "are both set"),
        ({"eval_strategy": "steps", "per_device_eval_batch_size": 6}, "must hold whole groups"),
        ({"sync_ref_model": True}, "beta=0.0 never reads"),
        (
            {"sync_ref_model": True, "beta": 0.1, "rollout_policy": "reference"},
            "frozen starting model",
        ),
        ({"vllm_mode": "ray"}, "expected one of 'colocate', 'server'"),
        (
            {"use_vllm": True, "rollout_engine": "hf"},
            "use_vllm=True and rollout_engine='hf': leave one of them out",
        ),
        (
            {"transformers_continuous_batching_config": {"max_memory_percent": 0.4}},
            "acts with use_transformers_continuous_batching=True: set this",
        ),
        (
            {"use_vllm": True, "use_transformers_continuous_batching": True},
            "use_vllm=True and use_transformers_continuous_batching=True: leave one",
        ),
        ({"use_vllm": True, "vllm_tensor_parallel_size": 2}, "takes --tensor-parallel-size"),
        (
            {"vllm_importance_sampling_clip_min": 3.0},
            "vllm_importance_sampling_clip_min=3.0 is not below",
        ),
        (
            {
                "vllm_importance_sampling_mode": "token_truncate",
                "vllm_importance_sampling_clip_max": None,
            },
            "without limits",
        ),
        ({"vllm_importance_sampling_mode": "token"}, "expected one of 'token_truncate'"),
        (
            {
                "vllm_importance_sampling_mode": "geometric_mask",
                "vllm_importance_sampling_clip_max": None,
            },
            "without limits",
        ),
        ({"rollout_bits": 1}, "rollout_bits=1: expected at least 2"),
        ({"rollout_lag": -1}, "rollout_lag=-1: expected at least 0"),
        ({"rollout_lag": 1, "use_vllm": True}, "cannot act with rollout_engine='vllm'"),
        ({"rollout_bits": 4, "rollout_policy": "reference"}, "samples from another"),
        ({"keep_sampling_mask": True}, "keeps all tokens: set top_p, top_k or min_p"),
        (
            {"keep_sampling_mask": True, "top_k": 3, "rollout_engine": "hf-cb"},
            "keep_sampling_mask=True cannot act with rollout_engine='hf-cb': expected one of "
            "'native', 'equal', 'hf'",
        ),
        ({"advantage_estimator": "gaee"}, "expected one of 'group', 'process', 'correct'"),
    ],
)
def test_bad_values_are_named_with_what_is_expected(changes, message):
    with pytest.raises(BadValue, match=message.replace("(", r"\(")):
        config(**changes)


@pytest.mark.parametrize(
    "ours", [BCOConfig, DPOConfig, GRPOConfig, PPOConfig, RewardConfig, SFTConfig]
)
@pytest.mark.parametrize("value", [-2, float("nan")])
def test_every_shared_number_out_of_range_is_refused(ours, value):
    for name in SHARED_RANGES.keys() & ours.settable():
        with pytest.raises(BadValue, match=f"{ours.__name__}.{name}=.*: expected"):
            ours(output_dir="unused", use_cpu=True, bf16=False, **{name: value})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"adam_beta1": 1.0}, "at least 0, and below 1"),
        ({"adam_epsilon": 0.0}, "above 0"),  # 0 / 0 where a gradient is 0
        ({"label_smoothing_factor": 1.5}, "at least 0 and at most 1"),
        ({"max_grad_norm": None}, "at least 0; 0 leaves gradients unclipped"),
        ({"pad_to_multiple_of": 0}, "at least 1"),
        ({"pad_to_multiple_of": "0"}, "'auto' or int | None, of at least 1"),
        ({"pad_to_multiple_of": "wide"}, "'auto' or int | None, got a text"),
        ({"save_steps": float("inf")}, "at least 0, and finite"),
    ],
)
def test_bounds_of_shared_numbers(changes, expected):
    with pytest.raises(BadValue, match="=.*: expected " + expected.replace("|", r"\|")):
        SFTConfig(output_dir="unused", use_cpu=True, bf16=False, **changes)
    at_bound = {"max_grad_norm": 0.0, "label_smoothing_factor": 1.0, "adam_beta1": 0.0}
    assert SFTConfig(output_dir="unused", use_cpu=True, bf16=False, **at_bound).adam_beta1 == 0


@pytest.mark.parametrize(
    ("changes", "steps", "size"),
    [
        ({}, 1, 8),
        ({"gradient_accumulation_steps": 4}, 4, 32),
        ({"gradient_accumulation_steps": 4, "steps_per_generation": 2}, 2, 16),
        ({"gradient_accumulation_steps": 4, "generation_batch_size": 64}, 8, 64),
    ],
)
def test_rollout_size_follows_from_what_is_set(changes, steps, size):
    found = config(**changes)
    assert (found.steps_per_generation, found.generation_batch_size) == (steps, size)


def test_vllm_is_chosen_by_either_name():
    for changes in ({"use_vllm": True}, {"rollout_engine": "vllm"}):
        found = config(**changes)
        assert found.use_vllm
        assert found.rollout_engine == "vllm"
        assert found.corrects_sampling
    assert not config().corrects_sampling
    assert not config(use_vllm=True, vllm_importance_sampling_correction=False).corrects_sampling


@pytest.mark.parametrize(
    "changes",
    [
        {"use_transformers_continuous_batching": True},
        {"use_transformers_paged": True},
        {"rollout_engine": "hf-cb"},
        {"use_transformers_continuous_batching": True, "rollout_engine": "hf-cb"},
    ],
)
def test_continuous_batching_is_chosen_by_any_name(changes):
    found = config(**changes)
    assert found.rollout_engine == "hf-cb"
    assert found.use_transformers_continuous_batching
    assert not found.use_vllm
    assert not config().use_transformers_continuous_batching


def test_booleans_name_the_reward_scale():
    assert config(scale_rewards=True).scale_rewards == "group"
    assert config(scale_rewards=False).scale_rewards == "none"


def test_precision_and_checkpointing_default_as_in_trl():
    found = GRPOConfig(output_dir="unused", use_cpu=True)
    assert found.bf16
    assert found.gradient_checkpointing
    assert not GRPOConfig(output_dir="unused", use_cpu=True, fp16=True).bf16
    plain = config(gradient_checkpointing=False)
    newer = "activation_checkpointing"  # transformers has this field from 5.23 on
    assert not getattr(plain, newer if hasattr(plain, newer) else "gradient_checkpointing")


def test_padding_resolves_to_a_number_or_none():
    assert config().pad_to_multiple_of is None
    assert config(pad_to_multiple_of="8").pad_to_multiple_of == 8
    assert config(pad_to_multiple_of="none").pad_to_multiple_of is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packing_strategy": "best"}, "packing_strategy='best': expected one of 'bfd'"),
        ({"loss_type": "sum"}, "loss_type='sum': expected one of 'nll'"),
        ({"truncation_mode": "middle"}, "truncation_mode='middle': expected one of 'keep_start'"),
        (
            {"truncation_mode": "keep_end", "packing": True},
            "truncation_mode='keep_end' with packing=True: packing_strategy decides",
        ),
        (
            {"label_smoothing_factor": 0.1, "loss_type": "dft"},
            "label_smoothing_factor=0.1 with loss_type='dft'",
        ),
        (
            {"activation_offloading": True, "gradient_checkpointing": False},
            "activation_offloading=True moves what activation checkpointing keeps",
        ),
        (
            {
                "gradient_checkpointing": False,
                "gradient_checkpointing_kwargs": {"selective": True},
            },
            "requires `gradient_checkpointing=True`",
        ),
        (
            {"gradient_checkpointing_kwargs": {"selective": True, "use_reentrant": True}},
            "requires non-reentrant checkpoints",
        ),
    ],
)
def test_sft_refuses_what_it_cannot_do(changes, message):
    with pytest.raises(BadValue, match=message):
        SFTConfig(output_dir="unused", use_cpu=True, **changes)
