"""Numbers given as text: the number where it is exactly one of the field's, else one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import DPOConfig, GRPOConfig, ModelConfig, PPOConfig, RLOOConfig, SFTConfig
from core.configs.number_texts import convert_numbers, number_of
from core.configs.script import DatasetConfig
from core.paper.overrides import LARGEST, field_types
from eval.errors import BadValue

QUIET = {"output_dir": "unused", "use_cpu": True, "bf16": False}
CONFIGS = [GRPOConfig, PPOConfig, RLOOConfig, SFTConfig]
NUMERIC = (int, float, int | None, float | None)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_numeric_field_of_every_config_takes_its_number_as_text(config):
    plain = config(**QUIET)
    names = [name for name, hint in field_types(config).items() if hint in NUMERIC]
    assert {"learning_rate", "max_steps", "weight_decay"} <= set(names)
    values = {name: plain._given[name] for name in names if plain._given[name] is not None}
    for name, value in values.items():
        setattr(plain, name, str(value))
    convert_numbers(plain)
    assert {name: getattr(plain, name) for name in values} == values
    with pytest.raises(BadValue, match=rf"{config.__name__}.learning_rate='fast': expected float"):
        config(**QUIET, learning_rate="fast")


def test_yaml_and_the_shell_give_texts():
    texts: dict[str, Any] = {"beta": "0.04", "learning_rate": "1e-6", "max_steps": "1e3"}
    texts |= {"top_k": " 5 ", "epsilon_high": "none", "reward_weights": ["0.5", 2.0]}
    numbers = {"beta": 0.04, "learning_rate": 1e-6, "max_steps": 1000, "top_k": 5}
    numbers |= {"epsilon_high": None, "reward_weights": [0.5, 2.0]}
    args = GRPOConfig(**QUIET, **texts)
    assert {name: getattr(args, name) for name in texts} == numbers
    adapters: dict[str, Any] = {"lora_r": "8", "lora_dropout": "0.1"}
    assert (ModelConfig(**adapters).lora_r, ModelConfig(**adapters).lora_dropout) == (8, 0.1)
    share: dict[str, Any] = {"fraction": "0.5"}
    assert DatasetConfig(path="rows", **share).fraction == 0.5


@pytest.mark.parametrize(
    ("name", "text"),
    [("max_steps", "2.5"), ("max_steps", "9" * 20), ("beta", "nan"), ("beta", "1e999"),
     ("beta", ""), ("beta", "0,04"), ("beta", "none"), ("top_k", "true")],
)  # fmt: skip
def test_what_is_no_such_number_is_refused_in_one_line(name, text):
    with pytest.raises(BadValue) as caught:
        GRPOConfig(**QUIET, **{name: text})
    assert str(caught.value).startswith(f"BadValue: GRPOConfig.{name}={text!r}: expected ")
    assert "\n" not in str(caught.value)


@given(st.integers(-LARGEST, LARGEST), st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_from_its_text(whole, real):
    assert number_of(str(whole), (int,), "") == whole
    assert number_of(repr(real), (float,), "") == real


@pytest.mark.parametrize("semantics", ["trl==1.16", "trl==0.22"])
@pytest.mark.parametrize("config", [GRPOConfig, RLOOConfig])
def test_the_length_of_prompts_is_refused_with_what_to_do(config, semantics):
    with pytest.raises(BadValue, match=r"max_prompt_length=512 is not supported: .* shorten"):
        config(**QUIET, max_prompt_length=512, semantics=semantics)


@pytest.mark.parametrize(("text", "value"), [("no", False), ("False", False), ("on", True)])
def test_a_switch_takes_its_value_as_text(text, value):
    args = GRPOConfig(**QUIET, mask_truncated_completions=text, log_completions=text)
    assert (args.mask_truncated_completions, args.log_completions) == (value, value)
    assert SFTConfig(**QUIET, packing=text).packing is value


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mask_truncated_completions", "maybe", "expected bool, got a text that is neither"),
        ("beta", float("nan"), "expected at least 0"),
        ("reward_weights", [1.0, float("nan")], "got NaN"),
        ("reward_weights", 1.0, "got a single number"),
        ("epsilon", [0.2], "expected float, got a list"),
        ("max_steps", 1.5, "expected int, got a fraction"),
        ("learning_rate", None, "expected at least 0"),
        ("seed", -1, "expected at least 0"),
        ("per_device_train_batch_size", 0, "expected at least 1"),
        ("gradient_accumulation_steps", 0, "expected at least 1"),
    ],
)
def test_a_value_of_another_type_or_range_is_refused(name, value, words):
    with pytest.raises(BadValue) as caught:
        GRPOConfig(**QUIET, **{name: value})
    assert str(caught.value).startswith(f"BadValue: GRPOConfig.{name}={value!r}: expected ")
    assert words in str(caught.value)


def test_a_whole_float_is_the_integer():
    args = GRPOConfig(**QUIET, per_device_train_batch_size=16.0)
    assert type(args.per_device_train_batch_size) is int


@pytest.mark.parametrize(
    ("config", "name", "value", "words"),
    [
        (GRPOConfig, "warmup_ratio", 0.1, "set warmup_steps to a share below 1"),
        (GRPOConfig, "use_liger_loss", True, "set use_liger_kernel"),
        (SFTConfig, "max_seq_length", 512, "set max_length"),
        (DPOConfig, "max_prompt_length", 512, "prompts are never cut by themselves"),
        (DPOConfig, "evaluation_strategy", "steps", "set eval_strategy"),
    ],
)
def test_a_field_of_earlier_releases_names_what_to_set(config, name, value, words):
    with pytest.raises(BadValue, match=rf"{config.__name__}.{name}=.* is not supported: .*{words}"):
        config(**QUIET, **{name: value})


def test_an_unknown_field_is_a_type_error_with_the_nearest_name():
    with pytest.raises(TypeError, match="no GRPOConfig field 'num_generation': did you mean num_g"):
        GRPOConfig(**QUIET, num_generation=8)


def test_a_subclass_may_take_further_keywords():
    class Mine(GRPOConfig):
        def __init__(self, *, mine, **keywords):
            super().__init__(**keywords)
            self.mine = mine

    assert Mine(**QUIET, mine=3).mine == 3
