"""The same global batch in any split gives the same loss, gradient norm and weights.

`per_device_train_batch_size` x `gradient_accumulation_steps` x ... must not change what is
learned, only how much memory it takes. Completions are fixed, so that the splits see the same.
"""

import copy
import random

import pytest
from grpo_runs import double, of_loss
from same_batch import (
    EXACT,
    GRPO,
    SINGLE,
    differences,
    spread_reward,
    steps_of,
    sums,
    weights_of,
)

from core import GRPOConfig, GRPOTrainer
from core.losses.aggregate import AGGREGATES
from core.losses.policy import LOSS_TYPES

GLOBAL = {  # bnpo's is a mean of per-micro-batch means
    **{LOSS_TYPES[n].aggregate: of_loss(n) for n in ("grpo", "dr_grpo", "dapo", "luspo")},
    "prompt_mean": {"loss_type": "dapo", "loss_aggregate": "prompt_mean"},
}
GLOBAL["global_token_mean"] |= {"token_normalizer": "step"}  # TRL's is one of each rollout
SPLITS = ((1, 8), (2, 4), (4, 2), (8, 1))


def fixed_completions(tokenizer):
    """A rollout function: the first, second ... call always gives the same completions."""
    draw = random.Random(1)

    def rollout(rows, trainer):  # noqa: ARG001 - the caller's signature
        ids = [[draw.randrange(5, 64) for _ in range(draw.choice([1, 3, 9]))] for _ in rows]
        return {
            "prompt_ids": [tokenizer(row).input_ids for row in rows],
            "completion_ids": [[*i, tokenizer.eos_token_id] for i in ids],
            "logprobs": None,
        }

    return rollout


def train(model, tokenizer, folder, split, rollout_size, rows, **options):
    """Loss and gradient norm of every step, and the final weights, for one split."""
    batch, accumulation = split
    args = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        generation_batch_size=rollout_size,
        **GRPO | options,
    )
    trainer = GRPOTrainer(
        model=copy.deepcopy(model),
        reward_funcs=spread_reward,
        args=args,
        train_dataset=sums(rows),
        processing_class=tokenizer,
        rollout_func=fixed_completions(tokenizer),
    )
    trainer.train()
    return steps_of(trainer), weights_of(trainer.model)


def assert_equal(runs):
    loss, norm, weights = differences(runs)
    assert loss < SINGLE
    assert norm < EXACT
    assert weights < EXACT


WINDOWS = {
    # rollout size, prompts per epoch, splits that can make it, optimizer steps in two epochs
    "rollout is the update": (8, 4, SPLITS, 4),
    "two updates per rollout": (16, 4, SPLITS[::2], 4),
    "ragged, half a window left": (4, 3, SPLITS[:3], 4),
    "ragged, rollout of one and a half windows": (12, 3, SPLITS[:3], 4),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("aggregate", GLOBAL)
def test_split_changes_nothing(aggregate, window, build_llama, tiny_tokenizer, tmp_path):
    rollout_size, rows, splits, steps = WINDOWS[window]
    model = double(build_llama())
    runs = [
        train(model, tiny_tokenizer, tmp_path, s, rollout_size, rows, **GLOBAL[aggregate])
        for s in splits
    ]
    assert len(runs[0][0]) == steps
    assert runs[0][0][:, 1].min() > 1e-3  # a gradient at every step
    assert_equal(runs)


@pytest.mark.parametrize(
    "options",
    [
        {"beta": 0.04, "epsilon_high": 0.28, "num_iterations": 2},
        {"importance_sampling_level": "sequence", "num_iterations": 2, "delta": 1.5},
        {"mask_truncated_completions": True, "scale_rewards": "batch"},
    ],
)
@pytest.mark.parametrize("aggregate", GLOBAL)
def test_split_changes_nothing_with(options, aggregate, build_llama, tiny_tokenizer, tmp_path):
    model = double(build_llama())
    runs = [
        train(model, tiny_tokenizer, tmp_path, s, 8, 2, **GLOBAL[aggregate] | options)
        for s in (SPLITS[0], SPLITS[3])
    ]
    assert_equal(runs)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_ragged_window_is_a_whole_step(loss_type, build_llama, tiny_tokenizer, tmp_path):
    """What is left at the end of an epoch has the gradient that it has as a step of its own."""
    model = double(build_llama())
    frozen = {**of_loss(loss_type), "learning_rate": 0.0, "num_train_epochs": 1}
    windows, alone = (
        train(model, tiny_tokenizer, tmp_path, split, 4, 3, **frozen)[0]
        for split in ((4, 2), (4, 1))
    )
    assert (len(windows), len(alone)) == (2, 3)
    assert windows[-1].tolist() == pytest.approx(alone[-1].tolist(), rel=1e-6)
    assert windows[-1, 1] > 1e-3


@pytest.mark.parametrize("aggregate", GLOBAL)
def test_rollouts_of_a_step_change_nothing(aggregate, build_llama, tiny_tokenizer, tmp_path):
    """Eight completions of one rollout, or of two rollouts of four, are the same step."""
    model = double(build_llama())
    frozen = {**GLOBAL[aggregate], "learning_rate": 0.0, "num_train_epochs": 1}
    runs = [train(model, tiny_tokenizer, tmp_path, (4, 2), size, 4, **frozen) for size in (8, 4)]
    assert len(runs[0][0]) == 2
    assert_equal(runs)


def test_bnpo_depends_on_the_split(build_llama, tiny_tokenizer, tmp_path):
    """Its token mean is per micro-batch, as in TRL; nothing promises more."""
    model = double(build_llama())
    runs = [train(model, tiny_tokenizer, tmp_path, s, 8, 4, loss_type="bnpo") for s in SPLITS[::3]]
    assert differences(runs)[0] > 1e-3


def test_the_table_promises_what_is_tested():
    assert {name for name, row in AGGREGATES.items() if row.split_invariant} == set(GLOBAL)


def test_bnpo_of_one_micro_batch_is_the_token_mean(build_llama, tiny_tokenizer, tmp_path):
    """Unsplit, bnpo and dapo are the same number."""
    model = double(build_llama())
    runs = [
        train(model, tiny_tokenizer, tmp_path, (8, 1), 8, 4, loss_type=name)
        for name in ("bnpo", "dapo")
    ]
    assert_equal(runs)
