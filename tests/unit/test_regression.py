"""A*-PO: values of prompts lie where they should, and the loss is at its best where theory says."""

from math import log

import pytest
import torch
from datasets import Dataset
from grpo_runs import digits, logs, weights
from hypothesis import given
from hypothesis import strategies as st

from core import A2POConfig, A2POTrainer
from core.errors import MissingColumn
from core.losses.regression import implicit_rewards, optimal_values, squared_regression
from eval.errors import BadValue

REWARDS = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8)
BETA = st.floats(0.01, 100)


def of(rewards, beta):
    return optimal_values(torch.tensor([rewards], dtype=torch.float64), beta).item()


@given(REWARDS, BETA, BETA)
def test_a_value_lies_between_mean_and_maximum_and_falls_with_beta(rewards, one, other):
    low, high = sorted((one, other))
    assert sum(rewards) / len(rewards) - 1e-9 <= of(rewards, high) <= of(rewards, low) + 1e-9
    assert of(rewards, low) <= max(rewards) + 1e-9


def test_a_value_by_hand():
    """Three right of eight at 0.5."""
    expected = 0.5 * log((3 * 7.38905609893065 + 5) / 8)
    assert of([1, 0, 1, 0, 0, 0, 1, 0], 0.5) == pytest.approx(expected, abs=1e-12)


def test_the_regression_is_least_at_the_tilted_reference():
    """pi ~ pi_ref exp(r / beta), with the V* of all completions under pi_ref: no loss at all."""
    beta, rewards = 0.3, torch.tensor([1.0, 0.0, 0.4], dtype=torch.float64)
    reference = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    tilted = reference * (rewards / beta).exp()
    value = beta * tilted.sum().log()
    logps = (tilted / tilted.sum()).log().requires_grad_()
    ones = torch.ones(3, 1)
    found = implicit_rewards(logps.unsqueeze(1), reference.log().unsqueeze(1), ones, beta)
    loss = squared_regression(found, rewards - value).sum()
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-20)
    assert logps.grad.abs().max() < 1e-12


def valued(n=16):
    messages = [[{"role": "user", "content": f"{i}+{i}="}] for i in range(n)]
    return Dataset.from_dict({"prompt": messages, "optimal_value": [0.1 * i for i in range(n)]})


@pytest.fixture
def make_a2po(build_llama, tiny_tokenizer, tmp_path):
    """Build an A*-PO trainer over a fresh tiny Llama."""

    def build(rows=None, **changes):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 4,
            "max_completion_length": 8,
            "max_steps": 6,
            "logging_steps": 1,
            "learning_rate": 1e-3,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        args = A2POConfig(**settings | changes)
        data = valued() if rows is None else rows
        return A2POTrainer(build_llama(), digits, args, data, processing_class=tiny_tokenizer)

    return build


def test_a_resumed_run_is_the_same_run(make_a2po):
    settings = {"save_strategy": "steps", "save_steps": 4, "steps_per_generation": 3}
    settings |= {"beta2": 0.5, "gradient_accumulation_steps": 1}
    whole = make_a2po(**settings, max_steps=8)
    whole.train()
    resumed = make_a2po(**settings, max_steps=8)
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-4")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    for name in ("loss", "reward", "kl", "implicit_reward", "advantage", "optimal_value"):
        assert logs(whole, name) == logs(resumed, name)


def test_the_log_says_what_is_regressed_on_what(make_a2po):
    trainer = make_a2po(beta2=0.5, max_steps=1)
    trainer.train()
    (row, _) = trainer.state.log_history
    assert row["implicit_reward"] == 0.0  # the policy is the reference
    assert row["advantage"] == pytest.approx(row["reward"] - row["optimal_value"], abs=1e-6)
    assert not {name for name in row if name.startswith("clip_ratio")}


def test_data_without_values_is_refused(make_a2po):
    with pytest.raises(MissingColumn, match="optimal-value"):
        make_a2po(valued().remove_columns("optimal_value"))


@pytest.mark.parametrize("name", ["beta", "epsilon", "kl_coef", "entropy_coef"])
def test_what_the_loss_does_not_read_is_refused(name, tmp_path):
    with pytest.raises(BadValue, match=f"{name}=0.5 is not supported"):
        A2POConfig(str(tmp_path), use_cpu=True, **{name: 0.5})
