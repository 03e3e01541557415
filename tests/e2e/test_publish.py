"""Commands write to runs/; `repro publish` alone changes results/ and reports/."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from short_run import MODULE
from short_run import SLUG as OTHER
from typer.testing import CliRunner

from core.cli.main import app
from core.records.files import folder_files
from core.records.places import Shelf, record_files
from core.records.record import read_records
from core.records.schema import runs_of
from core.run.likeness import likeness
from eval.plugins import VARIABLE, use

SLUG = "published-run"
IDENTICAL = "grpo, seed 0: identical to the published run, to the last bit"


def run_apart(repro, root, module, **variables):
    """Run the paper of a module in a process of its own; return what was printed."""
    command = [*repro, "run", SLUG, "--jobs", "1"]
    place = {"REPRO_ROOT": str(root), VARIABLE: str(module), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=os.environ | place | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory, forked):
    """A folder with a paper that was run in it, and what the command printed."""
    root = tmp_path_factory.mktemp("publish")
    module = root.with_name("published_run.py")
    module.write_text(MODULE.replace(OTHER, SLUG))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")
        use(module)
        yield root, run_apart([forked], root, module), module


@pytest.fixture
def root(ran, tmp_path, monkeypatch):
    """A copy of the folder, in which commands work."""
    shutil.copytree(ran[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def published(root):
    """The folder after its records were published; what is published is returned by file."""
    assert call("publish", SLUG, "--accept").exit_code == 0
    return lambda: [folder_files(root / name) for name in ("results", "reports")]


def call(*words):
    return CliRunner().invoke(app, words)


def test_every_command_writes_to_runs_alone_and_shows_what_is_there(ran, root):
    assert "grpo, seed 0: no published run of it" in ran[1]
    assert f"report: runs/reports/{SLUG}/cpu/report.md" in ran[1].replace(f"{ran[0]}/", "")
    for words in ("list", "runs", f"table {SLUG}", f"report {SLUG}", f"check {SLUG}"):
        done = call(*words.split())
        assert (done.exit_code, SLUG in done.stdout) == (0, True), (words, done.output)
    assert {path.name for path in root.iterdir()} == {"runs"}


def test_what_is_published_is_moved_rendered_and_checked(root):
    records = {path.name for path in record_files(SLUG)}
    assert record_files(shelf=Shelf.PUBLISHED) == []
    done = call("publish", SLUG, "--accept")
    assert done.exit_code == 0, done.output
    assert {path.name for path in record_files(SLUG, Shelf.PUBLISHED)} == records
    assert all(f"results/{SLUG}/{name}\n" in done.stdout for name in records)
    assert (root / "reports" / SLUG / "cpu" / "report.md").is_file()
    assert json.loads((root / "results" / SLUG / "accepted.json").read_text())["runs"]
    assert not list((root / "runs" / "results").rglob("*.*"))
    shutil.rmtree(root / "runs")
    assert call("check", SLUG).stdout == f"{SLUG}: ok\n"


def test_the_same_run_is_identical_and_changes_nothing_published(ran, root, published, forked):
    before = published()
    assert IDENTICAL in run_apart([forked], root, ran[2])
    assert published() == before
    assert not list((root / "runs" / "results").glob(f"{SLUG}/*.json"))


@pytest.mark.long
def test_another_kernel_path_is_equal_within_rounding_and_changes_nothing_published(
    ran, root, published
):
    before = published()
    started = [sys.executable, "-m", "core.cli.main"]  # torch reads the variable when it loads
    printed = run_apart(started, root, ran[2], ATEN_CPU_CAPABILITY="default")
    (line,) = [line for line in printed.splitlines() if line.startswith("grpo, seed 0: ")]
    assert "equal to the published run within rounding: largest difference " in line
    assert re.search(r"\d+ of 6 answers changed$", line)
    assert published() == before
    assert call("check", SLUG).stdout == f"{SLUG}: ok\n"


def test_a_record_that_fails_a_check_is_not_published(root):
    next((root / "runs" / "results" / "samples").iterdir()).unlink()
    done = call("publish", SLUG)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{SLUG} is not published, nor is any other: samples: " in done.stderr
    assert record_files(shelf=Shelf.PUBLISHED) == []


@pytest.mark.usefixtures("published")
def test_without_the_accepted_records_nothing_is_published(root):
    folder = root / "results" / SLUG
    lists = json.loads((folder / "accepted.json").read_text())
    (verdicts,) = lists["claims"].values()
    (folder / f"{verdicts}.json").unlink()
    done = call("publish", SLUG)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"the verdicts at cpu, {verdicts}, are not there; restore it" in done.stderr


@pytest.mark.usefixtures("root")
def test_unknown_names_and_the_option_of_another_command_are_misuse():
    for words, said in ((["publish", "no-such"], "no-such"), (["check", "--accept"], "publish")):
        done = call(*words)
        assert (done.exit_code, said in done.stderr) == (2, True)


@pytest.mark.usefixtures("root")
def test_a_run_that_differs_by_more_than_rounding_names_what_differs():
    (run,) = runs_of(read_records(SLUG))
    other = json.loads(json.dumps(run))
    other["train"]["steps"] = 3
    other["curves"]["reward"] = [[step, value + 1] for step, value in run["curves"]["reward"]]
    found = likeness(run, other)
    assert str(found).startswith("different from the published run (curves reward, train steps): ")
    assert found.largest == (pytest.approx(1.0), "reward")
    assert str(likeness(run, run)) in IDENTICAL
