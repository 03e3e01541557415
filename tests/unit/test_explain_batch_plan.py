"""The batch plan counts what the sampler and the optimizer really do."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.configs.grpo import GRPOConfig
from core.explain.batch_plan import batch_plan
from eval.errors import BadValue


def settings(**changes):
    """A configuration of 8 x 4 completions per rollout and update, in groups of 8."""
    defaults = {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "num_train_epochs": 1.0,
        "max_steps": -1,
        "num_generations": 8,
        "num_iterations": 1,
        "steps_per_generation": None,
        "generation_batch_size": None,
        "max_completion_length": 100,
        "rollout_draws": 1,
        "completions_per_row": 1,
        "has_ratio": True,
    }
    return SimpleNamespace(**defaults | changes)


def test_default_is_one_update_per_rollout():
    plan = batch_plan(settings(), n_prompts=40)
    assert (plan.prompts_per_rollout, plan.completions_per_rollout) == (4, 32)
    assert (plan.updates_per_rollout, plan.completions_per_update) == (1, 32)
    assert (plan.updates, plan.rollouts, plan.left_out, plan.incomplete_micro_batches) == (
        10,
        10,
        0,
        0,
    )
    assert plan.sampled_tokens == plan.trained_tokens == 10 * 32 * 100


def test_several_updates_per_rollout_train_more_tokens_than_they_sample():
    plan = batch_plan(settings(steps_per_generation=8, num_iterations=2, max_steps=8), n_prompts=64)
    assert plan.completions_per_rollout == 64
    assert plan.updates_per_rollout == 4
    assert plan.rollouts == 2
    assert (plan.sampled_tokens, plan.trained_tokens) == (2 * 64 * 100, 8 * 32 * 100)


def test_rollout_smaller_than_an_update():
    plan = batch_plan(settings(steps_per_generation=2, max_steps=3), n_prompts=64)
    assert plan.updates_per_rollout == 0.5
    assert plan.rollouts == 6


def test_ragged_window_and_left_out_prompts_are_said():
    plan = batch_plan(settings(steps_per_generation=3), n_prompts=5 * 3 + 2)
    assert plan.rollouts_per_epoch == 5  # 15 micro-batches: three windows of 4 and one of 3
    assert (plan.incomplete_micro_batches, plan.updates, plan.left_out) == (3, 4, 2)
    assert "last update of each epoch has 3 of 4 micro-batches" in str(plan)
    assert "2 prompts of each epoch fill no whole rollout" in str(plan)


def test_processes_multiply_the_completions():
    plan = batch_plan(settings(), n_prompts=64, world_size=2)
    assert plan.completions_per_update == plan.completions_per_rollout == 64
    assert plan.prompts_per_rollout == 8
    assert "each of 2 processes" in str(plan)


def test_generation_batch_size_names_the_rollout_directly():
    plan = batch_plan(settings(generation_batch_size=16), n_prompts=64)
    assert (plan.prompts_per_rollout, plan.updates_per_rollout) == (2, 0.5)


def test_plain_words():
    text = str(batch_plan(settings(max_steps=1), n_prompts=4))
    assert "4 prompts x 8 completions each = 32 completions in 4 groups" in text
    assert "4 micro-batches = 32 completions" in text
    assert "4 micro-batches used once: 1 update" in text
    assert "1 update, 1 rollout, at most 3,200 tokens sampled and 3,200 trained on" in text
    assert "note" not in text


def test_prompts_that_are_drawn_again_are_sampled_for_as_well():
    configs = (
        GRPOConfig(output_dir="unused", use_cpu=True, rollout_selection=name)
        for name in ("all", "filled")
    )
    once, often = (
        batch_plan(settings(rollout_draws=config.rollout_draws), n_prompts=40) for config in configs
    )
    assert often.sampled_tokens == 10 * once.sampled_tokens
    assert often.trained_tokens == once.trained_tokens
    assert "prompts are drawn up to 10 times for a rollout, until it is full" in str(often)


def test_too_few_prompts_are_refused():
    with pytest.raises(BadValue, match="3 prompts do not fill one rollout of 4 prompts"):
        batch_plan(settings(), n_prompts=3)


def test_rollout_that_does_not_split_into_groups_is_refused():
    with pytest.raises(BadValue, match="groups of 7"):
        batch_plan(settings(num_generations=7), n_prompts=64)


@given(
    batch=st.integers(1, 6),
    accumulation=st.integers(1, 6),
    steps=st.integers(1, 6),
    iterations=st.integers(1, 3),
    prompts=st.integers(1, 40),
    max_steps=st.integers(1, 60),
)
def test_counts_agree_with_a_walk_through_the_run(
    batch, accumulation, steps, iterations, prompts, max_steps
):
    args = settings(
        per_device_train_batch_size=2 * batch,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=steps,
        num_iterations=iterations,
        num_generations=2,
        max_steps=max_steps,
    )
    if prompts < batch * steps:
        return
    plan = batch_plan(args, n_prompts=prompts)
    updates = rollouts = 0
    while updates < max_steps:
        window = 0
        for passed in range(prompts // (batch * steps) * steps * iterations):
            rollouts += passed % (steps * iterations) == 0
            window += 1
            if window == accumulation:
                window, updates = 0, updates + 1
                if updates == max_steps:
                    break
        else:
            updates += window > 0
    assert (plan.updates, plan.rollouts) == (updates, rollouts)
