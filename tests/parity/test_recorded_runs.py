"""Whole runs that a released TRL made, replayed by our trainer with its `semantics`."""

import json
from functools import cache

import pytest
import torch
from peers import difference, shared_metrics
from recorded.record import (
    COMMON,
    FOLDER,
    RUNS,
    Watch,
    digit_share,
    learned,
    losing,
    model,
    rows,
    tokenizer,
)

import core

RELEASES = ("0.21", "0.24")
SINGLE = 1e-6  # the largest difference of what is computed in single precision
# Logged as in 1.16 with every semantics, and what that was before.
OTHERWISE = {
    "clip_ratio/high_max",  # of micro-batches, not of completions
    "clip_ratio/low_min",
    "completions/clipped_ratio",  # those that end with padding too
    "completions/max_terminated_length",
    "completions/mean_terminated_length",
    "completions/min_terminated_length",
    "num_tokens",  # without those of masked completions
    "reward_std",  # the mean over groups, not the std of all rewards
    "step_time",
}
ROUNDED = 5.1e-5  # of a loss; TRL's Trainer logs four digits


@cache
def record(release, run):
    """What the release sampled, was paid, logged and learned."""
    return json.loads((FOLDER / f"trl-{release}.json").read_text())["runs"][run]


class Player:
    """A rollout function that plays what was sampled; `asked` are the prompts that it answers."""

    def __init__(self, rollouts):
        self.rollouts, self.asked = rollouts, []

    def __call__(self, prompts, trainer):
        rollout = self.rollouts[len(self.asked)]
        self.asked.append([trainer.processing_class(text).input_ids for text in prompts])
        torch.manual_seed(len(self.asked))  # as when it was recorded
        return {**rollout, "logprobs": None}


def replay(release, run, semantics, folder):
    """The run of a release by our trainer: what it asked, was paid, logged and learned."""
    player, rewards, watch = Player(record(release, run)["rollouts"]), [], Watch()

    def digits(completions, **columns):
        rewards.append(digit_share(completions, **columns))
        return rewards[-1]

    trainer = losing(core.GRPOTrainer)(
        model=model(folder / "model"),
        reward_funcs=digits,
        args=core.GRPOConfig(
            output_dir=str(folder), semantics=f"trl=={semantics}", **COMMON | RUNS[run]
        ),
        train_dataset=rows(),
        processing_class=tokenizer(),
        rollout_func=player,
        callbacks=[watch],
    )
    return {"asked": player.asked, "rewards": rewards, **learned(trainer, watch)}


def apart(mine, theirs):
    """The largest difference of a loss or a weight after any step."""
    return max(difference(mine[name], theirs[name]) for name in ("losses", "weights"))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("release", RELEASES)
def test_it_ends_where_the_release_ended(release, run, tmp_path, measured):
    """On the same prompts in the same order, with the same rewards."""
    theirs, mine = record(release, run), replay(release, run, release, tmp_path)
    assert mine["asked"] == [each["prompt_ids"] for each in theirs["rollouts"]]
    assert mine["rewards"] == theirs["rewards"]
    for name in ("losses", "weights"):
        assert len(mine[name]) == len(theirs[name]) > 3
    assert measured(f"a run by TRL {release}: losses, weights", apart(mine, theirs)) < SINGLE
    first, last = theirs["weights"][0], theirs["weights"][-1]
    assert difference(first, last) > 1e-3  # it did learn


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("release", RELEASES)
def test_it_logs_what_the_release_logged(release, run, tmp_path):
    theirs, mine = record(release, run)["logs"], replay(release, run, release, tmp_path)["logs"]
    for other, row in zip(theirs, mine, strict=True):
        assert shared_metrics(row) - OTHERWISE == {*other} - OTHERWISE
        for name in {*other} - OTHERWISE:
            limit = ROUNDED if name == "loss" else 1e-5 * max(1.0, abs(other[name]))
            assert abs(row[name] - other[name]) < limit, name


# Where a release computed the same as another: 0.21 had another loss by default, and 0.24 divided
# by the tokens of a rollout where 1.16 takes the update's share of them.
STATED = {"descent, grpo, two updates, cut ones masked"}
ALIKE = {
    ("0.21", "0.24"): STATED,
    ("0.24", "0.21"): STATED,
    ("0.21", "1.16"): STATED,
    ("0.24", "1.16"): STATED | {"defaults", "descent"},
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("release", "semantics"), ALIKE)
def test_with_other_semantics_it_ends_elsewhere(release, semantics, run, tmp_path):
    """Where the two releases differ, and nowhere else."""
    found = apart(replay(release, run, semantics, tmp_path), record(release, run))
    assert found < SINGLE if run in ALIKE[release, semantics] else found > 0.01
