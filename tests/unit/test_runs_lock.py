"""`repro clean` and commands that work in runs/ exclude each other."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from typer.testing import CliRunner

from core.cli.main import app
from core.records.runs_lock import LOCK, alone_in_runs, reading, working_in_runs
from eval.errors import BadValue

SCORED = ("--benchmarks", "pocket-gsm8k", "--limit", "1")
WORKER = """
import sys
from core.records.runs_lock import working_in_runs
sys.argv = ["repro", "run", "dapo\\x1b[2J"]
with working_in_runs():
    print("works", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A command at work in another process."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "works\n"
        yield process
        process.kill()


def test_who_works_there_is_named(worker):
    with pytest.raises(BadValue) as error, alone_in_runs():
        pass
    assert f"process {worker.pid} on " in str(error.value)
    assert "repro run dapo" in str(error.value)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_lock_ends_with_the_process(worker, end):
    worker.stdin.close() if end is None else os.kill(worker.pid, end)
    worker.wait()
    with alone_in_runs():
        pass


def test_commands_work_beside_each_other(worker):
    with working_in_runs(), working_in_runs():
        worker.stdin.close()
        worker.wait()
        with pytest.raises(BadValue, match=f"process {os.getpid()} "), alone_in_runs():
            pass
    with alone_in_runs():
        pass


@pytest.mark.parametrize("place", ["runs", "elsewhere"])
def test_an_evaluation_locks_the_runs_that_its_model_lies_in(place, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    folder = tmp_path / place / "model"
    folder.mkdir(parents=True)
    with reading(folder), suppress(BadValue), alone_in_runs():
        assert place == "elsewhere"
    (tmp_path / "runs" / LOCK).unlink()
    assert CliRunner().invoke(app, ["eval", str(folder), *SCORED]).exit_code == 2
    assert (tmp_path / "runs" / LOCK).exists() == (place == "runs")


def test_clean_deletes_nothing_beside_a_command(worker, tmp_path):
    page = tmp_path / "runs" / "reports" / f"page-{0:016}"
    page.mkdir(parents=True)
    refused = CliRunner().invoke(app, ["clean", "--yes"])
    assert (refused.exit_code, page.exists()) == (2, True)
    assert f"process {worker.pid}" in refused.stderr
    worker.stdin.close()
    worker.wait()
    cleaned = CliRunner().invoke(app, ["clean", "--yes"])
    assert (cleaned.exit_code, page.exists()) == (0, False)
