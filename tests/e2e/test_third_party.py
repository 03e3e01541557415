"""The distribution in examples/third-party, and what its workflow runs to check it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "third-party"
WORKFLOW = Path(".github", "workflows", "check.yml")


@pytest.fixture(scope="module")
def place(tmp_path_factory, pip_install, tiny_model, forked):
    """A copy of the folder, its distribution installed, and records of short runs."""
    folder = tmp_path_factory.mktemp("third") / "party"
    shutil.copytree(EXAMPLE, folder)
    site = folder.with_name("site")
    pip_install(folder, site)
    folder.with_name("bin").symlink_to(forked.parent)
    shutil.rmtree(folder / "more_papers")  # it is the installed one that is found
    short = {"model": str(tiny_model), "max_steps": 1, "num_generations": 4, "heldout_problems": 2,
             "per_device_train_batch_size": 8, "max_completion_length": 8, "eval_max_tokens": 8,
             "eval_limit": 2, "at_k_samples": 2, "at_k_limit": 2}  # fmt: skip
    changed(site / "more_papers" / "low_kl.py", "arms=", f"profiles={{'cpu': {short}}}, arms=")
    done = shell(folder, "repro run low-kl --jobs 1; repro publish")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def copy(place, tmp_path):
    """A folder of one test's own, with its distribution beside it."""
    shutil.copytree(place, tmp_path / "party")
    shutil.copytree(place.with_name("site"), tmp_path / "site")
    (tmp_path / "bin").symlink_to(place.with_name("bin"))
    return tmp_path / "party"


def shell(folder, command):
    """Run a command as a step of a workflow does, where the distribution and ours are installed."""
    programs = (folder.with_name("bin"), Path(sys.executable).parent, os.environ["PATH"])
    path = os.pathsep.join(map(str, programs))
    packages = os.pathsep.join(map(str, (folder.with_name("site"), ROOT)))
    unset = ("REPRO_ROOT", "REPRO_PLUGINS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": packages, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def check(folder):
    """What the steps of the workflow after the installation do."""
    (job,) = yaml.safe_load((folder / WORKFLOW).read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0].startswith("pip install ")
    assert len(commands) > 1
    return shell(folder, "\n".join(commands[1:]))


def changed(path, old, new):
    """Write something else in the place of a text that is there once."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_the_example_and_its_records_pass_and_no_paper_of_ours_is_checked(copy):
    done = check(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "low-kl: ok\n" in done.stdout
    assert "deepseekmath-grpo" not in done.stdout
    assert {path.name for path in (copy / "results").iterdir()} == {"low-kl", "samples"}


def test_a_claim_of_an_arm_that_there_is_not_fails(copy):
    module = copy.with_name("site") / "more_papers" / "low_kl.py"
    changed(module, '.of("usual-kl")', '.of("usual")')
    done = check(copy)
    assert done.returncode == 1
    assert "claim no-worse: no arm 'usual'" in done.stdout


def test_a_record_that_was_changed_fails(copy):
    records = [
        path
        for path in (copy / "results" / "low-kl").glob("*.json")
        if json.loads(path.read_text())["kind"] == "run"
    ]
    changed(records[0], '"arm": "low-kl"', '"arm": "usual-kl"')
    done = check(copy)
    assert done.returncode == 1
    assert f"{records[0].name}: its content has the digest" in done.stdout


def test_where_nothing_is_of_others_and_nothing_recorded_none_of_ours_takes_its_place(repro, root):
    for command, said in (("check", "nothing to check"), ("report", "nothing to render")):
        done = repro(command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr
    assert not (root / "results").exists()  # printed numbers of our papers are none of theirs


def test_our_own_workflow_runs_what_continuous_integration_runs():
    (job,) = yaml.safe_load((ROOT / WORKFLOW).read_text())["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
