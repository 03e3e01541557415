"""PPO: the value model learns, its loss and its state are what they should be."""

import pytest
import torch
from grpo_runs import digits, double, logs, prompts, weights
from hypothesis import given
from hypothesis import strategies as st

from core import PPOConfig, PPOTrainer
from core.forward.values import token_values, value_model
from core.losses.kl import next_coefficient
from core.losses.value import clipped_value_loss, explained_variance
from eval.errors import BadValue


@pytest.fixture
def make_ppo(build_llama, tiny_tokenizer, tmp_path):
    """Build a PPO trainer over a fresh tiny Llama."""

    def build(rewards=digits, *, model=None, **changes):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 1,
            "steps_per_generation": 2,
            "max_completion_length": 8,
            "max_steps": 4,
            "num_iterations": 2,
            "logging_steps": 1,
            "learning_rate": 1e-3,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
        }
        return PPOTrainer(
            model or build_llama(),
            rewards,
            PPOConfig(**settings | changes),
            prompts(24),
            processing_class=tiny_tokenizer,
        )

    return build


NUMBERS = st.floats(-3, 3, width=32)


@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 1, width=32))
def test_a_clipped_loss_of_values_is_at_least_the_plain_one(value, old, target, width):
    v, o, r = (torch.tensor([[x]], dtype=torch.float64) for x in (value, old, target))
    plain = 0.5 * (v - r).square()
    assert (clipped_value_loss(v, o, r, width) >= plain).all()
    torch.testing.assert_close(clipped_value_loss(v, o, r, 1e9), plain)
    torch.testing.assert_close(clipped_value_loss(o, o, r, width), 0.5 * (o - r).square())


def test_a_value_that_nears_its_return_is_held_back():
    """By hand: from 0 towards 1 by more than 0.2 there is no gradient, away from it there is."""
    values = torch.tensor([[0.5, 0.1, -0.5]], requires_grad=True)
    loss = clipped_value_loss(values, torch.zeros(1, 3), torch.ones(1, 3), 0.2)
    loss.sum().backward()
    assert loss[0].tolist() == pytest.approx([0.32, 0.405, 1.125])
    assert values.grad[0].tolist() == pytest.approx([0.0, -0.9, -1.5])


def test_explained_share_by_hand():
    returns, mask = torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[1, 1, 0]])
    assert explained_variance(returns, returns, mask).item() == 1.0
    assert explained_variance(torch.tensor([[2.0, 2.0, 5.0]]), returns, mask).item() == 0.0
    assert explained_variance(
        torch.tensor([[1.0, 2.0, 5.0]]), returns, mask
    ).item() == pytest.approx(0.75)
    assert explained_variance(returns, torch.ones(1, 3), mask).item() == 0.0


@pytest.mark.parametrize(("kl", "factor"), [(0.5, 0.5), (0.7, 1.0), (1.4, 1.0), (1.6, 2.0)])
def test_a_steered_weight_is_halved_and_doubled(kl, factor):
    assert next_coefficient(0.3, kl, 1.0) == pytest.approx(0.3 * factor)


def batch_of(tokenizer):
    return {
        "prompt_ids": torch.tensor([[0, 7, 8], [9, 10, 11]]),
        "prompt_mask": torch.tensor([[0, 1, 1], [1, 1, 1]]),
        "completion_ids": torch.tensor([[12, 13, 14], [15, tokenizer.eos_token_id, 0]]),
        "completion_mask": torch.tensor([[1, 1, 1], [1, 1, 0]]),
    }


def test_the_value_of_a_token_is_that_of_all_before_it(build_llama, tiny_tokenizer):
    """Packed and padded alike, by the hidden states of the model itself, and 0 at first."""
    model = double(value_model(build_llama()))
    batch = batch_of(tiny_tokenizer)
    assert token_values(model, batch).eq(0).all()
    torch.nn.init.normal_(model.get_output_embeddings().weight, std=0.1)
    found = token_values(model, batch)
    head = model.get_output_embeddings().weight[0]
    for row, before in enumerate(([7, 8], [9, 10, 11])):
        count = int(batch["completion_mask"][row].sum())
        ids = torch.tensor([[*before, *batch["completion_ids"][row, :count].tolist()]])
        states = model.model(ids).last_hidden_state[0]
        expected = states[len(before) - 1 : -1] @ head
        torch.testing.assert_close(found[row, :count], expected, atol=1e-6, rtol=1e-6)
        assert found[row, count:].eq(0).all()
    model.config._attn_implementation = "eager"  # is not packed; its softmax has 32 bits
    torch.testing.assert_close(token_values(model, batch), found, atol=1e-6, rtol=1e-6)


def test_gradients_of_values_are_finite_differences(build_llama, tiny_tokenizer):
    model, batch = double(value_model(build_llama())), batch_of(tiny_tokenizer)
    torch.nn.init.normal_(model.get_output_embeddings().weight)
    weight = model.model.layers[0].mlp.up_proj.weight
    old, returns = torch.zeros(2, 3).double(), torch.ones(2, 3).double()

    def loss():
        errors = clipped_value_loss(token_values(model, batch), old, returns, 1e6)
        return (errors * batch["completion_mask"]).sum()

    loss().backward()
    step = torch.zeros_like(weight)
    step[3, 5] = 1e-5
    with torch.no_grad():
        weight.add_(step)
        up = loss()
        weight.sub_(2 * step)
        down = loss()
    assert weight.grad[3, 5].item() == pytest.approx((up - down).item() / 2e-5, rel=1e-4)


def value_weights(trainer):
    return weights(trainer.critic.model)


@pytest.mark.parametrize("save", [2, 3, 4])
def test_a_resumed_run_is_the_same_run(save, make_ppo):
    """Between passes over a rollout, within one and after it: values, moments, the steered KL."""
    settings = {"max_steps": 7, "save_strategy": "steps", "save_steps": save}
    settings |= {"old_kl_coef": 0.3, "old_kl_target": 1e-4, "lam": 0.5}
    whole = make_ppo(**settings)
    whole.train()
    resumed = make_ppo(**settings)
    resumed.train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-{save}")
    assert torch.equal(weights(whole.model), weights(resumed.model))
    assert torch.equal(value_weights(whole), value_weights(resumed))
    for name in ("loss", "reward", "kl", "value_loss", "old_kl", "old_kl_coef", "value_explained"):
        assert logs(whole, name) == logs(resumed, name)
    assert len(set(logs(whole, "old_kl_coef"))) > 1 or len(logs(whole, "old_kl_coef")) == 1


def test_values_learn_what_is_paid(make_ppo):
    """With rewards that are all 1 and no KL, values near 1."""
    trainer = make_ppo(
        lambda completions, **_: [1.0] * len(completions),
        kl_coef=0.0,
        lam=1.0,
        learning_rate=0.0,
        value_learning_rate=3e-3,
        cliprange_value=1e6,
        max_steps=40,
    )
    start = weights(trainer.model)
    trainer.train()
    losses = logs(trainer, "value_loss")
    assert losses[0] == pytest.approx(0.5, rel=1e-3)
    assert losses[-1] < 0.1 * losses[0]
    assert torch.equal(start, weights(trainer.model))  # advantages that are all alike say nothing


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": 1.5}, "lam=1.5: expected 0 to 1"),
        ({"gamma": -0.1}, "gamma=-0.1"),
        ({"old_kl_target": 0.1}, "expected both above 0"),
        ({"advantage_estimator": "group"}, "against the value model"),
        ({"scale_rewards": "batch"}, "does not take it"),
        ({"beta": 0.1}, "leave one of them out"),
        ({"fp16": True}, "gradient scaler"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, tmp_path):
    with pytest.raises(BadValue, match=message):
        PPOConfig(str(tmp_path), use_cpu=True, **settings)
