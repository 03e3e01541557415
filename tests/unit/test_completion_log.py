"""What rewards give to the table of completions: kept in checkpoints, aligned with its rows."""

import datetime
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from grpo_runs import digits, logs, prompts
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


EVALUATING = {
    "log_completions": True,
    "eval_strategy": "steps",
    "eval_steps": 1,
    "per_device_eval_batch_size": 4,
    "max_steps": 2,
}


def files_of(folder):
    return {path.stem: pd.read_parquet(path) for path in (folder / "completions").iterdir()}


def test_completions_of_training_and_of_each_evaluation_are_kept_apart(make_grpo, tmp_path):
    make_grpo(log_completions=True, max_steps=2).train()
    alone = files_of(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    sets = {"two": prompts(2), "a/b": prompts(3)}
    make_grpo(evaluation=sets, **EVALUATING).train()
    found = files_of(tmp_path / "out")
    assert set(alone) == {"completions_00001", "completions_00002"}
    assert set(found) - set(alone) == {
        f"completions_eval_{name}_0000{step}" for name in ("two", "a%2Fb") for step in (1, 2)
    }
    for name, frame in alone.items():
        pd.testing.assert_frame_equal(found[name], frame)
    for step in (1, 2):
        for name, rows in {"two": 8, "a%2Fb": 12}.items():
            assert found[f"completions_eval_{name}_0000{step}"]["step"].tolist() == [step] * rows


def test_an_evaluation_logs_its_own_completions_alone_and_all_of_them(make_grpo, tmp_path):
    trainer = make_grpo(evaluation=prompts(5), **EVALUATING)
    trainer.predict(prompts(2))
    for _ in range(2):
        trainer.evaluate()
    (frame,) = files_of(tmp_path / "out").values()
    assert len(frame) == 5 * 4


def test_rewards_of_one_name_have_a_column_each(make_grpo, tmp_path):
    def made(value):
        def reward(completions, **_):
            return [value] * len(completions)

        return reward

    given = [made(1.0), lambda completions, **_: [2.0] * len(completions), made(4.0)]
    given += [lambda completions, **_: [8.0] * len(completions), made(16.0)]
    given[-1].__name__ = "reward_1"
    trainer = make_grpo(given, log_completions=True, max_steps=1)
    trainer.train()
    names = {"reward_2": 1.0, "<lambda>_1": 2.0, "reward_3": 4.0, "<lambda>_2": 8.0}
    names["reward_1"] = 16.0
    assert trainer.reward_func_names == list(names)
    (frame,) = files_of(tmp_path / "out").values()
    for name, value in names.items():
        assert logs(trainer, f"rewards/{name}/mean") == [value]
        assert frame[name].tolist() == [value] * 8
    assert logs(trainer, "reward") == [31.0]


@pytest.mark.parametrize("name", ["step", "prompt", "completion", "advantage", "reward"])
def test_what_rewards_name_like_another_column_stands_beside_it(name, make_grpo, tmp_path):
    make_grpo(log_completions=True, max_steps=1).train()
    (plain,) = files_of(tmp_path / "out").values()

    def reward(completions, log_extra, **_):
        log_extra(name, ["of the reward"] * len(completions))
        return digits(completions)

    reward.__name__ = name
    make_grpo(reward, log_completions=True, max_steps=1).train()
    (frame,) = files_of(tmp_path / "out").values()
    shown = name if name == "reward" else f"reward/{name}"
    assert frame[shown].tolist() == plain["digits"].tolist()
    assert frame[f"extra/{name}"].tolist() == ["of the reward"] * 8
    own = ["step", "prompt", "completion", "advantage"]
    pd.testing.assert_frame_equal(frame.filter(own), plain.filter(own))
