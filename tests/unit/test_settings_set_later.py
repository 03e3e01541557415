"""A field set after its config is built is as one given at once, or refused in the same words."""

import pickle
from copy import deepcopy
from dataclasses import dataclass, fields

import pytest
from datasets import Dataset
from grpo_runs import digits, prompts
from hypothesis import given
from hypothesis import strategies as st
from test_configs import other_value
from transformers import TrainingArguments
from transformers.integrations import integration_utils

from core import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from eval.errors import BadValue

PLAIN = {"output_dir": "unused", "use_cpu": True, "bf16": False, "report_to": "none"}
FIELDS = {
    cls: {f.name: f.default for f in fields(cls) if f.init} for cls in (GRPOConfig, SFTConfig)
}


def later(cls, before, after):
    """Build settings with `before`, set `after` on them, and let a trainer take them."""
    args = cls(**PLAIN | before)
    for name, value in after.items():
        setattr(args, name, value)
    args.settle()
    return args


def values(args):
    return {name: getattr(args, name) for name in FIELDS[type(args)]} | {"device": args.device}


@pytest.mark.parametrize(
    ("cls", "name"), [(cls, name) for cls in FIELDS for name in cls.UNSUPPORTED | cls.CHOICES]
)
def test_what_is_refused_at_once_is_refused_later(cls, name):
    value = other_value(FIELDS[cls][name])
    with pytest.raises(BadValue) as at_once:
        cls(**PLAIN | {name: value})
    for _ in range(2):  # the second trainer is not let in either
        with pytest.raises(BadValue) as since:
            later(cls, {}, {name: value})
        assert str(since.value) == str(at_once.value)


SETTINGS = {
    "per_device_train_batch_size": st.sampled_from([4, 8]),
    "gradient_accumulation_steps": st.sampled_from([1, 2, 3]),
    "num_generations": st.sampled_from([2, 4]),
    "generation_batch_size": st.sampled_from([8, 16, 24]),
    "steps_per_generation": st.sampled_from([1, 2, 4]),
    "scale_rewards": st.sampled_from([True, False, "batch", "FALSE"]),
    "use_vllm": st.booleans(),
    "rollout_engine": st.sampled_from(["native", "vllm", "hf"]),
    "report_to": st.sampled_from(["none", "wandb", ["wandb"]]),
    "pad_to_multiple_of": st.sampled_from(["auto", "8", 4, "none"]),
    "fp16": st.booleans(),
    "bf16": st.sampled_from([None, False]),
    "gradient_checkpointing": st.booleans(),
    "eval_strategy": st.sampled_from(["no", "steps"]),
    "chat_template_kwargs": st.sampled_from(['{"a": 1}', None]),
}


def outcome(build):
    """Settings by name, or the sentence of their refusal."""
    try:
        return values(build())
    except ValueError as error:
        return str(error)


@given(st.data())
def test_settings_set_later_are_those_given_at_once(data):
    chosen = st.fixed_dictionaries({}, optional=SETTINGS)
    before, after = data.draw(chosen), data.draw(chosen)
    if isinstance(outcome(lambda: GRPOConfig(**PLAIN | before)), str):
        return
    at_once = outcome(lambda: GRPOConfig(**PLAIN | before | after))
    assert outcome(lambda: later(GRPOConfig, before, after)) == at_once


def test_untouched_settings_stay_and_a_size_that_was_derived_can_be_asked_for():
    args = later(GRPOConfig, {}, {})
    assert values(args) == values(GRPOConfig(**PLAIN))
    asked = later(GRPOConfig, {}, {"generation_batch_size": 8, "per_device_train_batch_size": 4})
    assert (asked.generation_batch_size, asked.steps_per_generation) == (8, 2)


@pytest.mark.parametrize("copied", [deepcopy, lambda args: pickle.loads(pickle.dumps(args))])
def test_a_copy_knows_what_was_set(copied):
    args = GRPOConfig(**PLAIN)
    args.gradient_accumulation_steps = 4
    other = copied(args)
    other.settle()
    assert (other.steps_per_generation, args.steps_per_generation) == (4, 1)


def test_a_list_changed_in_place_is_seen():
    args = GRPOConfig(**PLAIN)
    args.report_to.append("wandbb")
    with pytest.raises(BadValue, match="report_to='wandbb'"):
        args.settle()


def test_a_subclass_derives_once_and_its_defaults_hide_nothing():
    @dataclass
    class Doubled(GRPOConfig):
        def __post_init__(self):
            super().__post_init__()
            self.learning_rate *= 2

    @dataclass
    class Bonus(GRPOConfig):
        ds3_gather_for_generation: bool = False

    args = Doubled(**PLAIN, learning_rate=1.0)
    args.settle()
    args.settle()
    assert args.learning_rate == 2.0
    with pytest.raises(BadValue, match=r"Bonus\.ds3_gather_for_generation=False is not supported"):
        Bonus(**PLAIN)


def test_both_trainers_look_at_settings_again(build_llama, tiny_tokenizer):
    for trainer, args, rest, name in (
        (GRPOTrainer, GRPOConfig(**PLAIN), {"reward_funcs": digits}, "cache_implementation"),
        (SFTTrainer, SFTConfig(**PLAIN), {}, "truncation_mode"),
    ):
        setattr(args, name, 5)
        rows = prompts() if trainer is GRPOTrainer else Dataset.from_dict({"text": ["1+1"]})
        with pytest.raises(BadValue, match=f"{name}=5( is not supported|: expected one of)"):
            trainer(
                build_llama(),
                args=args,
                train_dataset=rows,
                processing_class=tiny_tokenizer,
                **rest,
            )


def test_a_service_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(integration_utils, "is_comet_available", lambda: False)
    args = GRPOConfig(**PLAIN | {"report_to": "comet_ml"})
    with pytest.raises(BadValue, match="report_to='comet_ml': the package comet is not installed"):
        args.settle()


def test_every_service_can_be_asked_for(monkeypatch):
    for name in integration_utils.INTEGRATION_TO_CALLBACK:
        args = GRPOConfig(**PLAIN | {"report_to": name})
        for known in vars(integration_utils).copy():
            if known.startswith("is_") and known.endswith("_available"):
                monkeypatch.setattr(integration_utils, known, lambda: True)
        args.settle()


@pytest.mark.parametrize("cls", FIELDS)
def test_no_steps_at_all_are_refused(cls):
    """transformers would train one."""
    with pytest.raises(BadValue, match="max_steps=0 would train one step: expected at least 1"):
        cls(**PLAIN, max_steps=0)


def test_sft_takes_training_arguments_and_grpo_says_what_it_takes(
    build_llama, tiny_tokenizer, tmp_path
):
    args = TrainingArguments(
        str(tmp_path), use_cpu=True, max_steps=1, learning_rate=3.0, hub_token="mine"
    )
    trainer = SFTTrainer(
        build_llama(),
        args,
        train_dataset=Dataset.from_dict({"text": ["1+1"]}),
        processing_class=tiny_tokenizer,
    )
    taken = (trainer.args.learning_rate, trainer.args.logging_steps, trainer.args.hub_token)
    assert taken == (3.0, 500, "mine")
    with pytest.raises(BadValue, match=r"args is a .*TrainingArguments: expected a GRPOConfig"):
        GRPOTrainer(build_llama(), digits, args, prompts(), processing_class=tiny_tokenizer)


def test_settings_that_a_trainer_has_taken_are_not_changed_without_a_word(make_grpo):
    trainer = make_grpo()
    trainer.args.max_steps, trainer.args.epsilon = 1, trainer.args.epsilon
    trainer.train()  # steps are transformers' own, and the other is what it was
    trainer.args.epsilon = 0.3
    with pytest.raises(
        BadValue, match=r"GRPOConfig\.epsilon was set to 0\.3 after the trainer took"
    ):
        trainer.train()
