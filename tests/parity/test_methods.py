"""A subclass written for TRL: a method that it overrides is called here, or refused in one line."""

import inspect

import pytest
import trl
from datasets import Dataset
from grpo_runs import digits, prompts

import core
from core.trainers.uncalled_methods import GRPO_METHODS, SFT_METHODS
from eval.errors import BadValue

TABLES = {"GRPOTrainer": GRPO_METHODS, "SFTTrainer": SFT_METHODS}
TEXTS = Dataset.from_dict({"text": ["1+1=2", "2+2=4"] * 4})


def methods(name):
    """Names of the methods of TRL's trainer that are its own."""
    theirs = getattr(trl, name)
    classes = [c for c in theirs.__mro__ if c.__module__.startswith("trl.")]
    found = {key for c in classes for key in vars(c) if inspect.isroutine(getattr(theirs, key))}
    return found - {"__init__"}


@pytest.mark.parametrize(
    ("trainer", "method"), [(name, method) for name in TABLES for method in TABLES[name]]
)
def test_what_would_never_be_called_is_refused_when_the_class_is_made(trainer, method):
    theirs = getattr(getattr(trl, trainer), method)
    for bases in ((), (type("Mixin", (), {method: theirs}),)):
        with pytest.raises(BadValue, match=f"Mine.{method} would never be called here: ") as e:
            type("Mine", (*bases, getattr(core, trainer)), {} if bases else {method: theirs})
        assert "\n" not in str(e.value)


@pytest.fixture
def build(build_llama, tiny_tokenizer, tmp_path):
    """Make a trainer of a class that goes through one step, saves and evaluates."""

    def make(cls):
        grpo = issubclass(cls, core.GRPOTrainer)
        config = core.GRPOConfig if grpo else core.SFTConfig
        args = config(
            str(tmp_path),
            use_cpu=True,
            bf16=False,
            max_steps=1,
            save_steps=1,
            remove_unused_columns=True,
            disable_tqdm=True,
            **({"max_completion_length": 2} if grpo else {}),
        )
        return cls(
            build_llama(),
            args=args,
            train_dataset=prompts() if grpo else TEXTS,
            eval_dataset=prompts() if grpo else TEXTS,
            processing_class=tiny_tokenizer,
            **({"reward_funcs": digits} if grpo else {}),
        )

    return make


@pytest.mark.parametrize("name", TABLES)
def test_every_method_of_trl_that_is_not_refused_is_called(name, build):
    called = set()
    assert methods(name) >= TABLES[name].keys()

    def watched(method):
        def call(self, *args, **keywords):
            called.add(method)
            return getattr(super(Mine, self), method)(*args, **keywords)

        return call

    expected = methods(name) - TABLES[name].keys()
    Mine = type("Mine", (getattr(core, name),), {method: watched(method) for method in expected})
    trainer = build(Mine)
    trainer.train()
    trainer.evaluate()
    trainer.train(resume_from_checkpoint=True)
    assert called == expected


def test_a_method_put_on_a_trainer_later_is_refused_when_it_trains(build, monkeypatch):
    trainer = build(core.GRPOTrainer)
    trainer._calculate_rewards = lambda *_: None
    with pytest.raises(BadValue, match=r"GRPOTrainer\._calculate_rewards would never be called"):
        trainer.train()
    monkeypatch.setattr(core.GRPOTrainer, "_compute_loss", lambda *_: None, raising=False)
    with pytest.raises(BadValue, match=r"GRPOTrainer\._compute_loss would never be called"):
        build(core.GRPOTrainer).train()
