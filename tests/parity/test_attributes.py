"""What callbacks and rollout functions read of a trainer has TRL's names and values."""

import pytest
import torch
import trl
from grpo_runs import digits
from peers import QUIET, length_reward, prompts
from transformers import Trainer

import core
from core.trainers.attributes import FromArguments, GRPOAttributes
from eval.errors import BadValue

# Of tools, environments, images and features that settings here refuse.
UNSUPPORTED = {
    "async_loop",
    "async_loop_ready_event",
    "async_loop_thread",
    "chat_template",
    "continuous_batching_config",
    "environment_factories",
    "environments",
    "max_tool_calling_iterations",
    "tools",
}
CHANGED = {
    "epsilon": 0.1,
    "num_iterations": 2,
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "max_completion_length": 5,
    "num_generations": 2,
    "num_generations_eval": 4,
    "loss_type": "grpo",
    "reward_weights": [2.0, 0.5],
    "scale_rewards": False,
    "epsilon_high": 0.4,
    "mask_truncated_completions": True,
    "pad_to_multiple_of": 4,
    "chat_template_kwargs": {"a": 1},
}


@pytest.fixture
def build(saved_llama, tiny_tokenizer, tmp_path):
    def make(package, cls=None, **changes):
        args = package.GRPOConfig(**QUIET | {"output_dir": str(tmp_path)} | changes)
        return (cls or package.GRPOTrainer)(
            saved_llama,
            [digits, length_reward],
            args,
            prompts(),
            processing_class=tiny_tokenizer,
        )

    return make


def public(trainer):
    """What TRL itself puts on a trainer, beyond what every trainer of transformers has."""
    every = vars(Trainer(trainer.model, trainer.args)).keys()
    return {k: v for k, v in vars(trainer).items() if k[0] != "_" and k not in every}


@pytest.mark.parametrize("changes", [{}, CHANGED])
def test_every_public_attribute_of_trls_trainer_has_its_value_here(changes, build):
    theirs, ours = build(trl, **changes), build(core, **changes)
    expected = public(theirs)
    assert set(expected) >= {"reward_funcs", "reward_func_names", "reward_weights", "beta"}
    assert set(expected) >= {"generation_config", "epsilon_low", "epsilon_high", "use_vllm"}
    for name in sorted(set(expected) - UNSUPPORTED):
        mine, value = getattr(ours, name), expected[name]
        if isinstance(value, torch.Tensor):
            assert torch.equal(mine, value), name
            continue
        assert (list(mine) if name == "reward_funcs" else mine) == value, name


def test_what_the_trainer_has_taken_is_not_set_without_effect(build):
    trainer = build(core)
    names = public(build(trl)).keys() - UNSUPPORTED
    acting = {"reward_weights", "generation_config", "ref_model", "rollout_func", "eos_token_ids"}
    for name in sorted(names - acting):
        with pytest.raises(BadValue, match=rf"GRPOTrainer\.{name} cannot be set to 'other'") as e:
            setattr(trainer, name, "other")
        assert "\n" not in str(e.value)
        setattr(trainer, name, getattr(trainer, name))  # as many a subclass does


def test_no_setting_hides_an_attribute_of_transformers_trainer():
    names = {
        name for name, value in vars(GRPOAttributes).items() if isinstance(value, FromArguments)
    }
    assert not names & set(dir(Trainer))
    assert not names & set(vars(core.GRPOTrainer))


def test_a_changed_generation_config_is_refused_when_completions_are_due(build):
    trainer = build(core)
    trainer.generation_config.temperature = 0.5
    with pytest.raises(BadValue, match="generation_config was changed: set temperature"):
        trainer.train()


def test_reward_weights_act_however_they_are_set(build):
    def reward(*weights, in_place=False):
        trainer = build(core, max_steps=1)
        if in_place:
            trainer.reward_weights.copy_(torch.tensor(weights))
        elif weights:
            trainer.reward_weights = weights
        trainer.train()
        row = trainer.state.log_history[0]
        return row["reward"], row["rewards/digits/mean"], row["rewards/length_reward/mean"]

    total, first, second = reward()
    assert total == pytest.approx(first + second)
    assert reward(2.0, 0.0)[0] == reward(2.0, 0.0, in_place=True)[0] == pytest.approx(2 * first)
    with pytest.raises(BadValue, match=r"reward_weights of shape \[1\] for 2 reward functions"):
        build(core).reward_weights = [1.0]
