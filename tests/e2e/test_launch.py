"""A run on two processes: trained by both, scored and recorded once; bad launches in one line."""

import json
import os
import signal
import sys
from contextlib import suppress

import numpy as np
import psutil
import pytest
from changed_settings import changed
from typer.testing import CliRunner
from waiting import checkpoint, wait_for

from core.records.record_text import parse_record

PAPER = "deepseekmath-grpo"
TWO = ("--processes", "2")
# A policy that earns rewards: AdamW makes whole steps of a gradient of rounding errors.
REWARDED = (
    "model=pocket-instruct",
    "learning_rate=0.001",
    "num_generations=8",
    "per_device_train_batch_size=16",
    "max_completion_length=64",
    "eval_max_tokens=64",
    "heldout_problems=12",
    "heldout_benchmarks=gsm8k",
    "heldout_limit=5",
)

# Runs a command as SLURM would on two machines, which are both this one.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
SLURM_NODEID=0 "$@" & first=$!
SLURM_NODEID=1 "$@" & second=$!
wait $first; code=$?
wait $second && exit $code
"""


@pytest.fixture(scope="module")
def two_machines(tmp_path_factory, settings):
    """The folder of a run on two machines of a job of SLURM, as far as a launch sees it."""
    from core.cli.main import app

    root = tmp_path_factory.mktemp("machines")
    program = root / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(SRUN)
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(root))
        patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        patch.setenv("SLURM_JOB_NUM_NODES", "2")
        patch.setenv("SLURM_JOB_ID", str(os.getpid()))  # of which the port is made
        done = CliRunner().invoke(app, list(map(str, launched(settings))))
    assert done.exit_code == 0, done.output
    return root


def launched(settings):
    """The command of a run on two processes."""
    return ("run", PAPER, *changed(settings, *REWARDED), "--launch", "fsdp2", *TWO)


def workers(process):
    """The processes that train, of a command that has started them."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):  # it ends while it is looked at
            if "-u -m core.stages.launched" in " ".join(child.cmdline()):
                found.append(child)
    return found


def run_record(root):
    """The one record of a run in this folder."""
    records = [parse_record(path.read_text()) for path in root.glob(f"runs/results/{PAPER}/*.json")]
    (record,) = [one for one in records if one["kind"] == "run"]
    return record


@pytest.mark.long
def test_two_machines_write_the_record_of_one(repro, root, settings, two_machines):
    """Every logged number is that of one process, and what is made once is there once."""
    (folder,) = two_machines.glob("runs/train-*")
    assert {path.name for path in folder.iterdir()} == {
        "done.json",
        "held-out",
        "log.jsonl",
        "model",
        "samples.html",
        "trained.json",
    }
    done = repro("run", PAPER, *changed(settings, *REWARDED))
    assert done.exit_code == 0, done.output
    spread, alone = run_record(two_machines), run_record(root)
    assert spread["train"].pop("launch") == "fsdp2, 2 processes"
    assert spread["overrides"] == alone["overrides"]
    assert spread["train"]["steps"] == alone["train"]["steps"] == 3
    assert spread["curves"].keys() == alone["curves"].keys()
    for name, curve in alone["curves"].items():
        found = spread["curves"][name]
        assert np.array(found) == pytest.approx(np.array(curve), rel=1e-4, abs=4e-5), name
    curves = {name: [value for _, value in curve] for name, curve in alone["curves"].items()}
    assert max(curves["frac_reward_zero_std"]) < 1.0  # each step has its reward
    assert min(curves["grad_norm"]) > 0.1
    assert max(curves["kl"]) > 1e-4  # the weights have moved
    assert max(curves["held_out/accuracy"]) > 0.0
    assert max(curves["benchmark/pocket-gsm8k"]) > 0.0


@pytest.mark.long
def test_a_killed_launch_continues_to_the_same_record(repro, start, root, settings, two_machines):
    """After a crash of one process the command goes on by itself, and after its own end again.

    No process outlives the command; a record's name is the digest of weights and samples too.
    """
    process = start(*launched(settings))
    wait_for(checkpoint(root, 1), process)
    worker = wait_for(lambda: workers(process), process)[0]
    worker.send_signal(signal.SIGABRT)
    wait_for(lambda: len(workers(process)) == 2 and worker not in workers(process), process)
    wait_for(checkpoint(root, 2), process)
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) >= 2
    process.kill()
    _, left = psutil.wait_procs(started, timeout=60)
    assert left == []
    assert "SIGABRT ended process " in process.communicate()[1]
    again = repro(*launched(settings))
    assert again.exit_code == 0, again.output
    assert "continues from checkpoint-" in again.stderr
    found, straight = (
        {path.name for path in place.glob(f"runs/results/{PAPER}/*.json")}
        for place in (root, two_machines)
    )
    assert found == straight != set()


@pytest.mark.parametrize(("name", "starts"), [("SIGSEGV", 2), ("SIGKILL", 1)])
def test_a_crash_is_tried_once_more(name, starts, repro, root, settings, monkeypatch):
    """What somebody ended, or the system for want of memory, is not."""
    ends = f"open(sys.argv[1] + '/ended.txt', 'w').write('{name} ended process 1')"
    counts = f"open('{root}/starts', 'a').write('.')"
    script = f"import sys; {counts}; {ends}; sys.exit(1)"
    monkeypatch.setattr("core.spread.launch.LAUNCHER", (sys.executable, "-c", script))
    done = repro(*launched(settings))
    assert done.exit_code == 1
    assert done.stderr.endswith(f"fsdp2 x2: {name} ended process 1\n")
    assert ("starting again" in done.stderr) == (starts == 2)
    assert (root / "starts").read_text() == "." * starts


def test_an_error_of_the_processes_is_told_once(repro, settings):
    done = repro("run", PAPER, *changed(settings, "num_generations=3"), "--launch", "ddp", *TWO)
    assert done.exit_code == 2
    assert done.stderr.count("is no multiple of num_generations=3") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--launch", "fdsp2", *TWO), "no launch 'fdsp2': did you mean fsdp2"),
        (("--launch", "ddp"), "a launch at least 2 processes"),
        (TWO, "several processes need a launch"),
        (("--launch", "ddp", "--processes", "3"), "processes=3 divides neither"),
    ],
)
def test_bad_launches(arguments, message, repro, settings):
    done = repro("run", PAPER, *settings, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_launch_without_deepspeed(repro, settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "deepspeed", None)  # as if it were not installed
    done = repro("run", PAPER, *settings, "--launch", "zero3", *TWO)
    assert done.exit_code == 2
    assert "pip install 'repro-papers[deepspeed]'" in done.stderr


def test_the_plan_says_which_launches_fit(repro):
    done = repro("plan", PAPER, "--at", "paper", "--gpus", "8xH100", "--json")
    assert done.exit_code == 0, done.output
    rows = {row["launch"]: row for row in json.loads(done.stdout)["memory"]}
    assert rows["ddp"]["weights"] == 4 * 6_910_365_696
    assert rows["fsdp2"]["optimiser"] == rows["ddp"]["optimiser"] / 8
    assert not rows["ddp"]["fits"]


def test_the_plan_refuses_what_it_cannot_know(repro):
    done = repro("plan", PAPER, "--gpus", "8xH100", "model=some/model")
    assert done.exit_code == 2
    assert "the sizes of some/model are not known here" in done.stderr
