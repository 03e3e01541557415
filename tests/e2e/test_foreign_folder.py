"""A folder that holds modules of the names of ours, or of Python's, is one to work in as any."""

import subprocess

import pytest
from changed_settings import changed

from core.bench.commands import output
from core.bench.commands import repro as command
from core.spread.jobs import run_jobs
from core.spread.launch import LAUNCHER
from core.spread.pool import Unit, run_units
from eval.grading.worker import Worker

NAMES = ("core/__init__", "core/run/__init__", "eval", "papers/__init__", "sympy", "random")
HOSTILE = "raise SystemExit('imported from the folder where we are')\n"


@pytest.fixture
def folder(root, monkeypatch):
    """Such a folder, and we are in it."""
    for name in NAMES:
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HOSTILE)
    monkeypatch.chdir(root)
    return root


@pytest.mark.usefixtures("folder")
def test_commands_in_processes_of_their_own_are_ours():
    run_units([Unit("list", ("list",))], 1)
    assert b"deepseekmath-grpo" in output(command("list"))


def test_a_queued_job_is_ours(folder):
    (folder / "random.py").unlink()  # for submitit's own process, which starts the job
    run_jobs([Unit("list", ("list",))], "local", {}, 1)


def test_the_processes_of_a_launch_are_ours(folder):
    """`core.families.table`: a module of ours that does nothing when it is run."""
    two = ("--cpu", "--num_processes", "2", "--mixed_precision", "no", "--dynamo_backend", "no")
    options = (*two, "--num_machines", "1", "--main_process_port", "0")
    arguments = (str(folder), *options, "--module", "core.families.table")
    run_units([Unit("launch", arguments, LAUNCHER)], 1)


@pytest.mark.usefixtures("folder")
def test_answers_are_compared_by_the_graders_own_packages():
    worker = Worker()
    try:
        assert worker.ask("strict", (r"\sqrt{4}", "2 + 0")) is True
    finally:
        worker.stop()


@pytest.mark.long
def test_a_whole_run_of_several_processes(folder, settings):
    few = ("max_steps=1", "eval_limit=2", "heldout_problems=2", "--seeds", "2", "--jobs", "2")
    run = command("run", "deepseekmath-grpo", *changed(settings, *few))
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # a claim may be refuted
    assert len(list(folder.glob("**/results/deepseekmath-grpo/*.json"))) == 4
