"""A reward function that uses too much processor time gives no reward, and training goes on."""

import math
import re
from functools import partial
from time import process_time

import pytest
import torch
from accelerate import Accelerator
from grader_clock import deadline
from grpo_runs import digits, logs, weights

from core.collect.completion_log import RewardLogs
from core.collect.event_loop import AsyncLoop
from core.collect.reward_calls import RewardFunction, Samples, call_rewards
from core.collect.reward_time import CALL_S, COMPLETION_S, time_limit_s
from core.collect.summary import named_metrics
from core.errors import RewardError
from core.rewards import Accuracy, Format, accuracy_reward, get_cosine_scaled_reward
from core.rewards.correctness import reasoning_accuracy_reward
from eval.grading import extraction

SLOW = r"(?:a|a)*b"  # exponential in a run of a
HANGING = "a" * 60 + "\n5"
ROWS = [{"prompt": f"what is {i} + {i}?", "answer": "5", "solution": "$5$"} for i in range(3)]


def endless(**_):
    while True:
        pass


def stubborn(**_):
    while True:
        try:
            endless()
        except Exception:
            continue


def backtracking(completions, **_):
    return [float(bool(re.match(SLOW, text))) for text in completions]


def lazy(completions, **_):
    return (endless() for _ in completions)


def ones(completions, **_):
    return [1.0] * len(completions)


def limited(function, seconds=0.2):
    """A function of the same name that may take less time."""

    def call(**keywords):
        return function(**keywords)

    call.__name__ = function.__name__
    vars(call).update(time_limit_s=seconds)
    return call


def scored(*functions, texts=("5", HANGING, "no"), log=None):
    samples = Samples.of(ROWS, texts, [[1]] * 3)
    shared = {} if log is None else {"log_metric": log.log_metric}
    named = [RewardFunction.of(one) for one in functions]
    return call_rewards(named, samples, shared, AsyncLoop())


@pytest.mark.parametrize("function", [endless, stubborn, backtracking, lazy])
def test_an_endless_reward_gives_none_and_the_others_theirs(function, caplog):
    log = RewardLogs()
    start = process_time()
    values = scored(limited(function), ones, log=log)
    assert values == [[None] * 3, [1.0] * 3]
    assert process_time() - start < 1
    assert named_metrics(log, Accelerator()) == {f"rewards/{function.__name__}/timeouts": 3.0}
    [warning] = caplog.messages
    assert f"'{function.__name__}' used more than 0.2 s of processor time on 3 compl" in warning
    assert "time_limit_s" in warning


def test_an_endless_reward_of_steps_gives_no_step():
    call = limited(endless)
    vars(call).update(per_step=True)
    assert scored(call) == [[[], [], []]]


def test_what_a_function_raises_or_returns_is_refused_as_without_a_limit():
    def broken(**_):
        raise KeyError("none")

    with pytest.raises(KeyError) as raised:
        scored(broken)
    assert "reward 'broken' raised this on 3 completions" in raised.value.__notes__[0]
    with pytest.raises(RewardError, match="returned 2 rewards, but 3 were expected"):
        scored(limited(lambda **_: [1.0, 2.0], math.inf))


def test_the_limit_is_the_function_s_own_or_in_proportion_to_the_completions():
    assert time_limit_s(ones, 8) == CALL_S + 8 * COMPLETION_S
    assert time_limit_s(limited(ones, 5), 8) == 5.0
    assert scored(partial(limited(endless))) == [[None] * 3]


def test_a_pattern_of_the_format_reward_that_hangs_is_stopped():
    class Limited(Format):
        time_limit_s = 0.2

    assert scored(Limited(pattern=SLOW)) == [[None] * 3]


@pytest.mark.parametrize("timeouts", [(1,), (1, 2)])
def test_timeouts_of_a_rollout_are_added_up(timeouts):
    log = RewardLogs()
    for count in timeouts:
        log.log_metric("rewards/brief/timeouts", count)
        log.log_metric("brief", count)
    found = named_metrics(log, Accelerator())
    assert found == {
        "rewards/brief/timeouts": sum(timeouts),
        "brief": sum(timeouts) / len(timeouts),
    }


def test_answers_without_a_verdict_in_time_are_counted(monkeypatch):
    monkeypatch.setattr("eval.grading.limited.CPU_S", 0.4)
    monkeypatch.setattr(extraction, "NEXT_EXAMPLE", re.compile(SLOW))
    log = RewardLogs()
    assert scored(Accuracy(), log=log) == [[1.0, None, 0.0]]
    assert log.metrics == {"rewards/accuracy/timeouts": [1]}


def test_answers_without_a_verdict_in_time_are_counted_by_the_rewards_of_trl():
    tower = r"</think>\boxed{99999999!}"  # computing it takes longer than the deadline
    texts = ("</think>\\boxed{5}", tower, "</think>\\boxed{6}")
    log, cosine = RewardLogs(), get_cosine_scaled_reward(10)
    rewards = (accuracy_reward, reasoning_accuracy_reward, cosine)
    with deadline(0.4):
        values = scored(*rewards, texts=texts, log=log)
    assert [[value is None for value in column] for column in values] == [[False, True, False]] * 3
    names = [RewardFunction.of(one).name for one in rewards]
    assert log.metrics == {f"rewards/{name}/timeouts": [1] for name in names}


def test_a_training_goes_on_and_logs_the_timeouts(make_grpo):
    trainer = make_grpo([limited(endless), digits], max_steps=2)
    before = weights(trainer.model)
    trainer.train()
    assert logs(trainer, "rewards/endless/timeouts") == logs(trainer, "rewards/endless/unscored")
    assert len(logs(trainer, "rewards/endless/timeouts")) == 2
    assert not torch.equal(before, weights(trainer.model))
