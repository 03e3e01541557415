"""The JSONL log survives kill -9 and a resume gives the log of an unbroken run."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from transformers import TrainerControl, TrainerState

from core.explain.jsonl import JsonlCallback, read_log
from eval.errors import DamagedFile


def run(path, first, last):
    """A run that resumes at step `first` and logs until `last`."""
    callback, state = JsonlCallback(path), TrainerState(global_step=first)
    callback.on_train_begin(None, state, TrainerControl())
    for step in range(first, last):
        state.global_step = step + 1
        callback.on_log(None, state, TrainerControl(), logs={"loss": 1 / (step + 1)})
    callback.on_log(None, state, TrainerControl(), logs={"train_runtime": 1.0})


def test_one_line_per_log_with_its_step(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    run(path, 0, 3)
    assert read_log(path) == [
        {"step": 1, "loss": 1.0},
        {"step": 2, "loss": 0.5},
        {"step": 3, "loss": 1 / 3},
        {"step": 3, "train_runtime": 1.0},
    ]


@pytest.mark.parametrize("killed_at", [3, 5, 8])
@pytest.mark.parametrize("tail", ["", '{"step": 9, "lo', '{"step": 9', "{"])
def test_resume_gives_the_log_of_an_unbroken_run(tmp_path, killed_at, tail):
    run(tmp_path / "straight.jsonl", 0, 10)
    path = tmp_path / "broken.jsonl"
    run(path, 0, killed_at)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]) + tail)
    run(path, 3, 10)
    assert path.read_bytes() == (tmp_path / "straight.jsonl").read_bytes()


def test_resume_of_a_finished_run_has_one_summary(tmp_path):
    path = tmp_path / "log.jsonl"
    run(path, 0, 4)
    before = path.read_bytes()
    run(path, 4, 4)
    assert path.read_bytes() == before


def test_fresh_run_starts_the_log_anew(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("something else")
    run(path, 0, 1)
    assert len(read_log(path)) == 2


@pytest.mark.long
def test_kill_9_while_writing_leaves_at_most_one_cut_line(tmp_path):
    path = tmp_path / "log.jsonl"
    script = (
        "import sys; from transformers import TrainerControl, TrainerState\n"
        "from core.explain.jsonl import JsonlCallback\n"
        "callback, state = JsonlCallback(sys.argv[1]), TrainerState()\n"
        "callback.on_train_begin(None, state, TrainerControl())\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    state.global_step += 1\n"
        "    callback.on_log(None, state, TrainerControl(), logs={'text': 'x' * 5000})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
    process.stdout.readline()
    while not path.exists() or path.stat().st_size < 200_000:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    rows = read_log(path, cut_off=True)
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))


def test_a_log_before_the_first_step_stays(tmp_path):
    """Another callback may log in its own `on_train_begin`, before this one's."""
    path = tmp_path / "log.jsonl"
    run(path, 0, 3)  # an earlier run in the same place
    callback, state = JsonlCallback(path), TrainerState(max_steps=5)
    callback.on_log(None, state, TrainerControl(), logs={"held_out/accuracy": 50.0})
    callback.on_train_begin(None, state, TrainerControl())
    assert read_log(path) == [{"step": 0, "held_out/accuracy": 50.0}]


def test_an_evaluation_outside_training_appends(tmp_path):
    path = tmp_path / "log.jsonl"
    run(path, 0, 2)
    JsonlCallback(path).on_log(None, TrainerState(), TrainerControl(), logs={"eval_reward": 1.0})
    assert [row["step"] for row in read_log(path)] == [1, 2, 2, 0]


def test_a_second_training_starts_anew(tmp_path):
    path = tmp_path / "log.jsonl"
    callback = JsonlCallback(path)
    for _ in range(2):
        state = TrainerState(max_steps=5)
        callback.on_train_begin(None, state, TrainerControl())
        callback.on_log(None, state, TrainerControl(), logs={"loss": 1.0})
    assert len(read_log(path)) == 1


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"step": \n{"step": 3}\n')
    with pytest.raises(DamagedFile, match=r"log\.jsonl, line 2"):
        read_log(path)


@pytest.mark.parametrize("line", ["[1]", "7", '{"loss": 1}', '{"step": "x"}', "null"])
def test_a_line_that_is_no_log_is_refused(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DamagedFile, match="line 1"):
        read_log(path)


def test_cut_line_is_refused_unless_allowed(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"st')
    with pytest.raises(DamagedFile, match="cut off"):
        read_log(path)
    assert read_log(path, cut_off=True) == [{"step": 1}]


def test_no_file_is_an_empty_log(tmp_path):
    assert read_log(tmp_path / "none.jsonl") == []


def test_numbers_of_any_kind_are_json(tmp_path):
    callback, state = JsonlCallback(tmp_path / "log.jsonl"), TrainerState(global_step=1)
    logs = {"a": torch.tensor(2.0), "b": float("nan"), "c": torch.tensor(float("inf")), "d": "字"}
    callback.on_log(None, state, TrainerControl(), logs=logs)
    line = (tmp_path / "log.jsonl").read_text()
    assert json.loads(line) == {"step": 1, "a": 2.0, "b": None, "c": None, "d": "字"}
    assert "字" in line


def test_only_the_first_process_writes(tmp_path):
    callback, state = JsonlCallback(tmp_path / "log.jsonl"), TrainerState()
    state.is_world_process_zero = False
    callback.on_train_begin(None, state, TrainerControl())
    callback.on_log(None, state, TrainerControl(), logs={"loss": 1.0})
    assert os.listdir(tmp_path) == []
