from copy import deepcopy

import pytest
from datasets import Dataset
from grpo_runs import digits, prompts

from core import GRPOTrainer
from core.collect.generation import tokenize_prompts
from core.errors import MissingColumn
from eval.errors import BadValue


def test_missing_prompt_column_is_named(make_grpo):
    with pytest.raises(MissingColumn, match="train_dataset has no column 'prompt': found 'answer'"):
        make_grpo(dataset=prompts().rename_column("prompt", "question"))


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (lambda rows, trainer: {"prompt_ids": rows, "completion_ids": rows}, "'logprobs'"),  # noqa: ARG005
        (
            lambda rows, trainer: {"prompt_ids": rows, "completion_ids": [], "logprobs": None},  # noqa: ARG005
            "0 completion_ids for 8 prompts",
        ),
        (
            lambda rows, trainer: {  # noqa: ARG005
                "prompt_ids": [[]] * len(rows),
                "completion_ids": [[7]] * len(rows),
                "logprobs": None,
            },
            "empty prompt_ids",
        ),
    ],
)
def test_rollout_function_must_return_all_keys_and_rows(make_grpo, rollout, message):
    with pytest.raises(BadValue, match=message):
        make_grpo(rollout=rollout).train()


@pytest.mark.parametrize("name", ["tools", "quantization_config", "environment_factory"])
def test_unsupported_arguments_are_refused(name, build_llama, tiny_tokenizer):
    with pytest.raises(BadValue, match=f"GRPOTrainer\\({name}=...\\) is not supported"):
        GRPOTrainer(build_llama(), digits, processing_class=tiny_tokenizer, **{name: [print]})


def test_no_rewards_or_wrong_numbers_of_them_are_refused(make_grpo):
    with pytest.raises(BadValue, match="No reward source provided: reward_funcs is empty"):
        make_grpo([])
    with pytest.raises(BadValue, match="reward_weights has 2 entries for 1 reward functions"):
        make_grpo(reward_weights=[1.0, 2.0])
    with pytest.raises(BadValue, match="needs a reward of steps"):
        make_grpo(advantage_estimator="process")


def test_a_normaliser_that_the_loss_does_not_have_is_refused(make_grpo):
    make_grpo(token_normalizer="step")
    with pytest.raises(BadValue, match="loss_aggregate='sequence_mean' does not take it"):
        make_grpo(token_normalizer="step", loss_type="grpo")


def test_what_was_launched_is_there(make_grpo, monkeypatch):
    """Accelerate itself would train a whole replica and say nothing."""
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "2")
    with pytest.raises(BadValue, match="accelerate would train without"):
        make_grpo()


@pytest.mark.parametrize("column", ["completions", "trainer_state", "log_metric"])
def test_a_column_named_like_another_keyword_of_rewards_is_refused(column, make_grpo):
    with pytest.raises(BadValue, match=f"train_dataset has a column '{column}'"):
        make_grpo(dataset=prompts().add_column(column, ["x"] * 8))


def test_a_tokenizer_without_an_end_is_refused(build_llama, tiny_tokenizer, make_grpo):
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.eos_token = tokenizer.pad_token = None
    args = make_grpo().args
    with pytest.raises(BadValue, match="the tokenizer has no eos_token"):
        GRPOTrainer(build_llama(), digits, args, prompts(), processing_class=tokenizer)


def test_an_evaluation_batch_that_cuts_groups_is_refused(make_grpo):
    trainer = make_grpo(per_device_eval_batch_size=6)
    with pytest.raises(BadValue, match="must hold whole groups"):
        trainer.evaluate(prompts(3))


def test_an_empty_prompt_is_named(make_grpo):
    rows = Dataset.from_dict({"prompt": ["", "1+1="] * 4})
    with pytest.raises(BadValue, match="a prompt has no tokens"):
        make_grpo(dataset=rows).train()


@pytest.mark.parametrize(("reward", "shown"), [(3, "3"), ([1.0], r"\[1.0\]"), (None, "None")])
def test_what_is_no_reward_is_refused_before_training(reward, shown, make_grpo):
    with pytest.raises(BadValue, match=f"reward_funcs has {shown}: expected a function, a model"):
        make_grpo([digits, reward])


@pytest.mark.parametrize("model", [None, 3, {"name": "a"}])
def test_what_is_no_model_is_refused(model, tiny_tokenizer):
    with pytest.raises(BadValue, match=r"model=.*: expected a model, or the name or folder of one"):
        GRPOTrainer(model, digits, train_dataset=prompts(), processing_class=tiny_tokenizer)


@pytest.mark.parametrize("odd", [None, 3])
def test_a_prompt_that_is_no_text_is_refused(odd, tiny_tokenizer):
    with pytest.raises(BadValue, match=f"a prompt is {odd}: expected a text or a list of messages"):
        tokenize_prompts(tiny_tokenizer, ["1+1", odd], {})
