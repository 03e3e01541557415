"""A sweep runs every combination once, and a run in a file is the same run."""

import json
from shutil import copytree

import pytest
from typer.testing import CliRunner

from core.records.record import read_records

PAPER = "deepseekmath-grpo"
RATES = ("0.01", "0.02")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory, settings):
    """The folder and the output of one command with two learning rates."""
    from core.cli.main import app

    folder = tmp_path_factory.mktemp("sweep") / "root"
    asked = ["run", PAPER, *settings[:-1], "--sweep", f"learning_rate={','.join(RATES)}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(folder))
        patch.setenv("REPRO_PLUGINS", "")
        done = CliRunner().invoke(app, [*asked, "--jobs", "2"])
    assert done.exit_code == 0, done.output
    return folder, done


@pytest.fixture
def swept(sweep, root):
    """The output of the sweep, whose folder is the root of this test."""
    folder, done = sweep
    copytree(folder, root, dirs_exist_ok=True)
    return done


def runs():
    return [record for record in read_records(PAPER) if record["kind"] == "run"]


def test_a_sweep_ends_with_one_table_of_all_its_runs(repro, settings, swept):
    assert {run["config"]["learning_rate"]["value"] for run in runs()} == {*map(float, RATES)}
    for rate in RATES:
        assert f"+ grpo learning_rate={rate}" in swept.stdout
    alone = repro("run", PAPER, *settings[:-1], f"learning_rate={RATES[0]}", "--jobs", "1")
    assert alone.exit_code == 0
    assert len(runs()) == len(RATES)  # it was the same run


@pytest.mark.usefixtures("swept")
def test_a_file_of_a_plan_is_the_same_run(repro, settings, tmp_path):
    file = tmp_path / "run.yaml"
    told = repro("plan", PAPER, *settings[:-1], f"learning_rate={RATES[0]}", "--yaml")
    assert told.exit_code == 0
    file.write_text(told.stdout)
    done = repro("run", "--config", file, "--jobs", "1", "--json")
    assert done.exit_code == 0, done.output
    (found,) = [run for run in runs() if run["config"]["learning_rate"]["value"] == 0.01]
    assert json.loads(done.stdout)["runs"] == [found["digest"]]
    keys = [
        [stage["key"] for stage in json.loads(repro("plan", *asked, "--json").stdout)["stages"]]
        for asked in (("--config", file), (PAPER, "--config", file, f"learning_rate={RATES[0]}"))
    ]
    assert keys[0] == keys[1]
    other = repro("plan", "--config", file, "learning_rate=0.5", "--json")
    assert json.loads(other.stdout)["settings"]["learning_rate"]["value"] == 0.5


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("run",), "no paper: expected PAPER"),
        (("run", PAPER, "--claims", "--sweep", "beta=0,1"), "leave one out"),
        (("run", PAPER, "--sweep", "beta=0"), "two values or more"),
        (("run", PAPER, "--sweep", "beeta=0,1"), "did you mean beta"),
        (("plan", PAPER, "--json", "--yaml"), "leave one out"),
        (("plan", "--config", "none.yaml"), "no such file"),
    ],
)
def test_what_makes_no_run_is_one_line(repro, asked, words):
    refused = repro(*asked)
    assert refused.exit_code == 2
    (line,) = refused.stderr.strip().splitlines()
    assert words in line
