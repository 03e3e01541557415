"""Each health condition fires on a series of logs that shows it and is silent on a healthy one."""

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import TrainerControl, TrainerState

from core.explain.health import WATCHES, Diagnosis, HealthCallback
from core.paper.registry import find_paper
from core.records.record_text import parse_record

RECORDS = Path(__file__).parents[2] / "results" / "deepseekmath-grpo"
GROUP = 8
HEALTHY = {
    "loss": 0.02,
    "grad_norm": 0.4,
    "reward": 0.5,
    "rewards/accuracy/std": 0.5,
    "rewards/format/std": 0.2,
    "frac_reward_zero_std": 0.3,
    "completions/clipped_ratio": 0.1,
    "completions/unique_fraction": 0.9,
    "kl": 0.05,
    "entropy": 0.6,
}
SICK = {
    "equal_rewards": {"frac_reward_zero_std": 1.0, "reward": 0.0},
    "silent_reward": {"rewards/format/std": 0.0},
    "all_cut": {"completions/clipped_ratio": 1.0},
    "clones": {"completions/unique_fraction": 1 / GROUP},
    "no_gradient": {"grad_norm": 0.0},
    "not_finite": {"grad_norm": float("nan")},
    "kl_high": {"kl": 12.0},
    "entropy_low": {"entropy": 0.001},
    "entropy_high": {"entropy": 4.0},
}


def train(series, callback=None, start=0, history=()):
    """Feed logs to the callback as a trainer does; its state afterwards."""
    callback = callback or HealthCallback()
    state = TrainerState(global_step=start, log_history=list(history))
    args = SimpleNamespace(num_generations=GROUP)
    callback.on_train_begin(args, state, TrainerControl())
    for logs in series:
        state.global_step += 1
        logged = dict(logs)
        state.log_history.append({**logged, "step": state.global_step})
        callback.on_log(args, state, TrainerControl(), logs=logged)
    return state


def flags(state):
    return [
        {k.removeprefix("health/"): v for k, v in row.items() if k.startswith("health/")}
        for row in state.log_history
    ]


def test_every_watch_has_a_sick_series():
    assert {w.name for w in WATCHES} == set(SICK)


@pytest.mark.parametrize("name", SICK)
def test_fires_alone_once_with_cause_and_remedy(name, capsys):
    state = train([HEALTHY] * 2 + [HEALTHY | SICK[name]] * 12)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"health/{name}:" in lines[0]
    assert "Likely cause: " in lines[0]
    assert "What to do: " in lines[0]
    assert flags(state)[-1] == {name: 1.0}
    assert flags(state)[1] == {}


def test_silent_on_a_healthy_run(capsys):
    state = train([HEALTHY | {"reward": 0.4 + 0.01 * i, "kl": 0.01 * i} for i in range(40)])
    assert capsys.readouterr().err == ""
    assert flags(state) == [{}] * 40


@pytest.mark.parametrize("name", [w.name for w in WATCHES if w.patience > 1])
def test_one_bad_log_is_not_a_condition(name, capsys):
    train([HEALTHY, HEALTHY | SICK[name], HEALTHY] * 4)
    assert capsys.readouterr().err == ""


def test_hysteresis_keeps_a_wavering_condition_from_repeating(capsys):
    wavering = [HEALTHY | {"frac_reward_zero_std": 1.0 if i % 2 else 0.75} for i in range(20)]
    bad = [HEALTHY | {"frac_reward_zero_std": 1.0}] * 3
    state = train([*bad, *wavering, HEALTHY, HEALTHY])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 3", "step 24"]
    assert lines[1] == "step 24: health/equal_rewards is over"
    assert [f.get("equal_rewards") for f in flags(state)] == [None] * 2 + [1.0] * 21 + [0.0, None]


def test_a_condition_that_returns_is_said_again(capsys):
    bad = [HEALTHY | SICK["all_cut"]] * 2
    train([*bad, HEALTHY, *bad])
    assert capsys.readouterr().err.count("every completion is cut") == 2


def test_resumed_run_says_nothing_twice_and_logs_the_same(capsys):
    series = [HEALTHY] * 2 + [HEALTHY | SICK["clones"]] * 8
    straight = train(series)
    capsys.readouterr()
    first = train(series[:6])
    assert capsys.readouterr().err.count("health/clones") == 1
    second = train(series[6:], start=6, history=first.log_history)
    assert capsys.readouterr().err == ""
    assert second.log_history == straight.log_history


def test_resume_between_two_bad_logs_keeps_the_count():
    series = [HEALTHY] + [HEALTHY | SICK["equal_rewards"]] * 4
    straight = train(series)
    first = train(series[:2])
    assert train(series[2:], start=2, history=first.log_history).log_history == straight.log_history


def test_evaluation_and_summary_logs_are_left_alone(capsys):
    state = train([{"eval_reward": 0.0, "eval_kl": 99.0}, {"train_runtime": 3.0}] * 5)
    assert capsys.readouterr().err == ""
    assert flags(state) == [{}] * 10


def test_only_the_first_process_speaks(capsys):
    callback = HealthCallback()
    state = TrainerState(is_world_process_zero=False)
    for _ in range(3):
        callback.on_log(None, state, TrainerControl(), logs=HEALTHY | SICK["no_gradient"])
    assert capsys.readouterr().err == ""
    assert callback.diagnosis.holding == ["no_gradient"]


def test_message_shows_the_numbers_that_tell_the_causes_apart(capsys):
    train([HEALTHY | {"frac_reward_zero_std": 1.0, "reward": 0.0}] * 3)
    assert "(frac_reward_zero_std = 1, reward = 0, completions/clipped_ratio = 0.1)" in (
        capsys.readouterr().err
    )


def test_missing_metrics_are_no_condition():
    diagnosis = Diagnosis(group=GROUP)
    assert [diagnosis.update({"loss": 0.0}) for _ in range(9)] == [{}] * 9


def test_two_completions_per_group_that_differ_are_not_clones():
    diagnosis = Diagnosis(group=2)
    half = [diagnosis.update({"completions/unique_fraction": 1.0}) for _ in range(4)]
    assert half == [{}] * 4
    diagnosis.update({"completions/unique_fraction": 0.5})
    diagnosis.update({"completions/unique_fraction": 0.5})
    assert diagnosis.holding == ["clones"]


def test_the_recorded_trainings_are_healthy():
    """They learned, and no condition holds at any of their steps; controls are to learn nothing."""
    records = [parse_record(path.read_text("utf-8")) for path in RECORDS.glob("*.json")]
    compared = find_paper(RECORDS.name).claimed_arms("cpu")
    trained = [one for one in records if one.get("curves") and one["arm"] in compared]
    assert len(trained) >= 15
    for record in trained:
        logs = defaultdict(dict)
        for name, curve in record["curves"].items():
            for step, value in curve:
                logs[step][name] = value
        diagnosis = Diagnosis(group=record["config"]["num_generations"]["value"])
        assert [diagnosis.update(logs[step]) for step in sorted(logs)] == [{}] * len(logs)
