"""What rewards give to the table of completions: kept in checkpoints, aligned with its rows."""

import datetime

import numpy as np
import pandas as pd
import pytest
import torch
from grpo_runs import digits
from hypothesis import given
from hypothesis import strategies as st

from core.collect.completion_log import CompletionLog
from eval.errors import BadValue


def rewarding(column, values):
    """A reward that logs `values` of a rollout's first completion for each of its completions."""

    def reward(completions, log_extra, **_):
        log_extra(column, [values] * len(completions))
        return digits(completions)

    return reward


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (datetime.date(2024, 1, 2), "date"),
        (np.datetime64("2024-01-02"), "date"),
        ({"when": datetime.time(1)}, "time"),
        ([object()], "object"),
        (b"x", "bytes"),
        ({1: "a"}, "dict"),
    ],
)
def test_what_no_checkpoint_can_keep_is_refused_when_it_is_given(value, kind, make_grpo):
    with pytest.raises(BadValue, match=f"log_extra\\('seen', ...\\): a value of type {kind}") as e:
        make_grpo(rewarding("seen", value)).train()
    assert "\n" not in str(e.value)
    assert "reward 'reward' raised this" in e.value.__notes__[0]


@pytest.mark.parametrize(
    "value",
    ["text", 1, 0.5, None, True, np.float32(0.5), np.array([1, 2]), torch.tensor([[1.0]]), ["a"]],
)
def test_what_is_given_can_be_read_back(value, make_grpo, tmp_path):
    settings = {"log_completions": True, "save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    make_grpo(rewarding("seen", value), **settings).train()
    resumed = make_grpo(rewarding("seen", value), **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-1"))
    frames = [
        pd.read_parquet(tmp_path / "out" / "completions" / f"completions_{step:05d}.parquet")
        for step in (1, 2)
    ]
    assert all(len(frame["seen"]) == 8 for frame in frames)


def test_another_number_of_values_than_of_completions_is_refused(make_grpo):
    def reward(completions, log_extra, **_):
        log_extra("seen", [1] * (len(completions) - 1))
        return digits(completions)

    with pytest.raises(BadValue, match=r"log_extra\('seen', ...\) got 7 values for 8 completions"):
        make_grpo(reward).train()


def test_two_rewards_may_log_one_column_and_the_last_one_stays(make_grpo, tmp_path):
    def first(completions, log_extra, **_):
        log_extra("seen", ["first"] * len(completions))
        return digits(completions)

    def second(completions, log_extra, **_):
        log_extra("seen", ["second"] * len(completions))
        return digits(completions)

    make_grpo([first, second], log_completions=True, max_steps=1).train()
    frame = pd.read_parquet(tmp_path / "out" / "completions" / "completions_00001.parquet")
    assert frame["seen"].tolist() == ["second"] * 8


@given(st.lists(st.tuples(st.integers(1, 4), st.sets(st.sampled_from("abc"))), min_size=1))
def test_rows_keep_their_own_columns(rollouts):
    """A column that some rewards log now and then never moves to other rows."""
    log, expected, start = CompletionLog(5), [], 0
    for n, names in rollouts:
        ids = [str(i) for i in range(start, start + n)]
        extra = {name: [name + i for i in ids] for name in sorted(names)}
        log.add(ids, ids, {}, extra, [0.0] * n)
        expected += [{name: name + i if name in names else None for name in "abc"} for i in ids]
        start += n
    frame = log.frame(1).reindex(columns=[*"abc"]).astype(object)
    assert frame.where(frame.notna(), None).to_dict("records") == expected[-5:]


def test_a_metric_that_is_no_number_is_refused_when_it_is_given(make_grpo):
    def reward(completions, log_metric, **_):
        log_metric("longest", "long")
        return digits(completions)

    with pytest.raises(BadValue, match=r"log_metric\('longest', 'long'\): expected a number"):
        make_grpo(reward).train()
