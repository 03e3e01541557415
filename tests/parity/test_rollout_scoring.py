"""The same completions give the micro-batches, advantages and metrics that TRL makes of them."""

import asyncio

import pytest
import torch
from datasets import Dataset
from peers import (
    PROMPTS,
    canned,
    difference,
    double,
    exact_head,
    length_reward,
    pair,
    repeated,
    shared_metrics,
    slices,
)
from transformers import LlamaConfig, LlamaForSequenceClassification

TOLERANCE = 1e-12
SINGLE = 3e-7  # rewards are single precision on both sides; means round by the order of their sums


def first_token_reward(completion_ids, **_):
    """Sometimes silent, and silent on the same rows as `patchy_reward` is now and then."""
    return [None if ids[0] % 3 == 0 else float(ids[0] % 4) for ids in completion_ids]


def patchy_reward(completion_ids, **_):
    return [None if ids[0] % 6 == 0 or len(ids) == 6 else len(ids) / 5 for ids in completion_ids]


def silent_reward(completion_ids, **_):
    return [None] * len(completion_ids)


def constant_reward(completion_ids, **_):
    return [0.1] * len(completion_ids)


REWARDS = {
    "one": {"rewards": length_reward},
    "equal": {"rewards": constant_reward},
    "two weighted": {"rewards": [length_reward, constant_reward], "reward_weights": [0.7, -0.2]},
    "with None": {"rewards": [first_token_reward, patchy_reward], "reward_weights": [1.0, 0.3]},
    "one silent": {"rewards": [length_reward, silent_reward]},
    "three": {"rewards": [length_reward, first_token_reward, patchy_reward]},
}
ROLLOUTS = {
    "one update": {},
    "cut completions left out": {"mask_truncated_completions": True},
    "two micro-batches": {"gradient_accumulation_steps": 2},
    "two updates": {"steps_per_generation": 2},
    "two iterations": {"num_iterations": 2},
    "half a window": {"gradient_accumulation_steps": 4, "steps_per_generation": 2},
    "padded": {"pad_to_multiple_of": 8},
}


@pytest.fixture
def model(saved_llama):
    return double(saved_llama)


def content(batch, name, width):
    """A tensor of a micro-batch without what padding holds, widened to `width` columns."""
    rows = batch[name]
    if rows.dim() < 2:
        return rows
    prompt = name.startswith("prompt")
    kept = rows * batch["prompt_mask" if prompt else "completion_mask"]
    missing = width - rows.size(1)
    return torch.nn.functional.pad(kept, (missing, 0) if prompt else (0, missing))


def compare(ours, theirs, batch):
    """Largest differences of the micro-batches, up to padding, and of the metrics."""
    tensors = []
    for mine, other in zip(slices(ours, batch), slices(theirs, batch), strict=True):
        assert set(mine) == set(other)
        for name, rows in other.items():
            width = rows.size(-1) if rows.dim() else 0
            tensors.append(difference(content(mine, name, width), content(other, name, width)))
    mine, other = ours._metrics["train"], theirs._metrics["train"]
    assert shared_metrics(mine) == set(other)
    return max(tensors), max(difference(mine[name], other[name]) for name in other)


@pytest.fixture
def peers_with(model, tiny_tokenizer, tmp_path, monkeypatch):
    """Make both trainers in float64 with the same given completions: `peers_with(beta=0)`."""
    exact_head(monkeypatch)

    def build(**options):
        both = pair(model, tiny_tokenizer, tmp_path, **options)
        for trainer in both:
            trainer.rollout_func = canned(tiny_tokenizer)
            if trainer.ref_model is not None:
                double(trainer.ref_model)
        return both

    return build


@pytest.mark.parametrize("rewards", REWARDS)
@pytest.mark.parametrize("aggregation", ["sum_then_normalize", "normalize_then_sum"])
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_advantages(scale, aggregation, rewards, peers_with, measured):
    options = REWARDS[rewards] | {
        "scale_rewards": scale,
        "multi_objective_aggregation": aggregation,
        "per_device_train_batch_size": 16,
    }
    peers = peers_with(**options)
    inputs, metrics = compare(*peers, repeated(peers[0], 16))
    assert measured("scoring, advantages: micro-batch", inputs) < TOLERANCE
    assert measured("scoring, advantages: metrics", metrics) < SINGLE


@pytest.mark.parametrize("rollout", ROLLOUTS)
@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_micro_batches(beta, rollout, peers_with, measured):
    options = ROLLOUTS[rollout] | {"beta": beta, "temperature": 0.8}
    peers = peers_with(**options)
    count = 8 * peers[0].args.steps_per_generation
    inputs, metrics = compare(*peers, repeated(peers[0], count))
    assert measured("scoring, rollouts: micro-batch", inputs) < TOLERANCE
    assert measured("scoring, rollouts: metrics", metrics) < SINGLE


def test_plain_text_prompts(peers_with, measured):
    def text_reward(prompts, completions, **_):
        assert all(isinstance(x, str) for x in [*prompts, *completions])
        return [len(p) + len(c) / 9 for p, c in zip(prompts, completions, strict=True)]

    peers = peers_with(rewards=text_reward, rows=Dataset.from_dict({"prompt": PROMPTS}))
    inputs, metrics = compare(*peers, repeated(peers[0], 8))
    assert measured("scoring, plain text: micro-batch", inputs) < TOLERANCE
    assert measured("scoring, plain text: metrics", metrics) < SINGLE


def test_rewards_are_called_alike(peers_with):
    calls = []

    def curious_reward(prompts, completions, completion_ids, answer, log_metric, **more):
        log_metric("answers", float(len(answer)))
        calls.append(
            {
                "prompts": prompts,
                "completions": completions,
                "completion_ids": completion_ids,
                "answer": answer,
                "step": more.pop("trainer_state").global_step,
                "more": set(more),
            }
        )
        return [float(a) for a in answer]

    peers = peers_with(rewards=curious_reward)
    compare(*peers, repeated(peers[0], 8))
    assert calls[0] == calls[1]
    assert calls[0]["more"] == {"log_extra"}
    assert peers[0]._metrics["train"]["answers"] == [8.0]


def test_metrics_of_rewards_are_means_of_rollouts(peers_with):
    """A rollout counts once, however often a reward logs a number in it."""
    times = iter([1, 3, 1, 3])

    def talkative_reward(completion_ids, log_metric, **_):
        count = next(times)
        for _ in range(count):
            log_metric("calls", float(count))
        return [float(len(ids)) for ids in completion_ids]

    peers = peers_with(rewards=talkative_reward)
    for trainer in peers:
        slices(trainer, repeated(trainer, 8))
        slices(trainer, repeated(trainer, 8))
    ours, theirs = (trainer._metrics["train"]["calls"] for trainer in peers)
    assert ours == theirs == [1.0, 3.0]


def test_evaluation(peers_with, measured):
    """In evaluation nothing is shuffled or accumulated, and the group may have another size."""
    ours, theirs = peers_with(num_generations_eval=2, gradient_accumulation_steps=2, beta=0.04)
    losses = []
    for trainer in (ours, theirs):
        trainer.model.eval()
        rows = [dict(row) for row in repeated(trainer, 8)]
        losses.append(trainer.prediction_step(trainer.model, rows, prediction_loss_only=True)[0])
    mine, other = ours._metrics["eval"], theirs._metrics["eval"]
    assert shared_metrics(mine) == set(other)
    assert measured("evaluation: loss", difference(*losses)) < TOLERANCE
    metrics = max(difference(mine[name], other[name]) for name in other)
    assert measured("evaluation: metrics", metrics) < SINGLE


async def slow_reward(completion_ids, **_):
    await asyncio.sleep(0)
    return [float(ids[-1] % 4) for ids in completion_ids]


def test_async_reward(peers_with, measured):
    peers = peers_with(rewards=[slow_reward, length_reward])
    inputs, metrics = compare(*peers, repeated(peers[0], 8))
    assert measured("scoring, async reward: micro-batch", inputs) < TOLERANCE
    assert measured("scoring, async reward: metrics", metrics) < SINGLE


def test_reward_model(model, tiny_tokenizer, tmp_path, peers_with, measured):
    judge = LlamaForSequenceClassification(
        LlamaConfig(**model.config.to_dict() | {"num_labels": 1})
    )
    judge.save_pretrained(tmp_path / "judge")
    tiny_tokenizer.save_pretrained(tmp_path / "judge")
    peers = peers_with(rewards=str(tmp_path / "judge"))
    inputs, metrics = compare(*peers, repeated(peers[0], 8))
    assert measured("scoring, reward model: micro-batch", inputs) < SINGLE
    assert measured("scoring, reward model: metrics", metrics) < SINGLE
