"""What is installed from the wheel works in an empty folder as it does in the checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distributions
from pathlib import Path

import pytest

from core.models.packaged import PACKAGED
from core.paper.registry import entries

ROOT = Path(__file__).parents[2]
SOURCE = ("core", "eval", "papers", "pyproject.toml", "README.md")
SHORT = (
    "max_steps=1", "num_generations=4", "per_device_train_batch_size=8", "eval_limit=2",
    "eval_max_tokens=8", "max_completion_length=8", "at_k_samples=2", "at_k_limit=2",
    "heldout_problems=2",
)  # fmt: skip
UNSET = ("PYTHONPATH", "REPRO_ROOT", "REPRO_DATA")  # what may lead to the checkout
ENV = {k: v for k, v in os.environ.items() if k not in UNSET} | {"OMP_NUM_THREADS": "1"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")

pytestmark = pytest.mark.long


def hidden() -> set[str]:
    """What this environment has of us in its folder of packages, however it was installed.

    And the packages of checkpoints, of which we read a file, without what they need to run it.
    """
    names = {"core", "eval", "papers"}
    read = {packaged.requirement.partition("==")[0] for packaged in PACKAGED.values()}
    for found in distributions():
        if found.name in read or any(p.group == "repro.papers" for p in found.entry_points):
            names |= {file.parts[0] for file in found.files or ()}
    return names


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An environment with links to what this one has but us, and our wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCE:
        there = ROOT / name
        copy = shutil.copytree if there.is_dir() else shutil.copyfile
        copy(there, folder / name)
    build = ("wheel", "--no-deps", "--no-build-isolation", "-w", folder / "dist", folder)
    subprocess.run([*PIP, *build], check=True, cwd=folder)
    venv.create(folder / "env", symlinks=True)
    links = folder / "links" / "site-packages"  # a name by which libraries know their kind
    links.mkdir(parents=True)
    for there in Path(sysconfig.get_path("purelib")).iterdir():
        if there.name not in hidden() and there.suffix != ".pth":
            (links / there.name).symlink_to(there)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "links.pth").write_text(f"{links}\n")
    install = ("--python", folder / "env", "install", "--no-deps", "--no-index")
    subprocess.run([*PIP, *install, *(folder / "dist").glob("*.whl")], check=True, env=ENV)
    return folder


@pytest.fixture
def call(place, tmp_path):
    """Run a program of that environment in an empty folder."""

    def run(program, *arguments):
        command = [place / "env" / "bin" / program, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=ENV, capture_output=True, text=True)

    return run


def test_it_is_the_wheel_that_is_imported_with_every_file_of_its_own(call, place):
    code = "import core, eval, papers; print(core.__file__, eval.__file__, papers.__file__)"
    files = call("python", "-c", code).stdout.split()
    (site,) = (place / "env" / "lib").glob("python*/site-packages")
    assert [Path(file).parents[1] for file in files] == [site] * 3
    for folder in ("core", "eval", "papers"):
        here = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file()}
        assert {
            p for p in here if "__pycache__" not in p.parts and not (site / p).is_file()
        } == set()


def test_it_breaks_no_requirement_beside_trl_and_lm_eval(place, call):
    code = "from importlib.metadata import version as v; print(v('trl'), v('lm-eval'))"
    assert call("python", "-c", code).stdout.split() == ["1.16.0", "0.4.13"]
    check = [*PIP, "--python", place / "env", "check"]
    done = subprocess.run(check, env=ENV, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_papers_are_listed_shown_planned_and_their_printed_numbers_tabled(call):
    listed = json.loads(call("repro", "list", "--json").stdout)
    assert {row["from"] for row in listed} == {"repro-papers"}
    assert [row["paper"] for row in listed] == list(entries())
    for verb in ("show", "plan"):
        assert call("repro", verb, "deepseekmath-grpo").returncode == 0
    table = call("repro", "table", "deepseekmath")
    assert "| DeepSeekMath-RL " in table.stdout


def test_a_run_is_trained_scored_and_reported(call, tmp_path):
    done = call("repro", "run", "deepseekmath-grpo", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "| + grpo " in done.stdout
    page = done.stdout.splitlines()[-1].removeprefix("report: ")
    assert (tmp_path / page).read_text().startswith("# ")
    (record,) = [
        found
        for path in (tmp_path / "runs" / "results" / "deepseekmath-grpo").glob("*.json")
        if (found := json.loads(path.read_text()))["kind"] == "run"
    ]
    assert record["versions"]["repro"]


def test_suites_models_templates_and_tasks_are_there(call):
    suites = "pocket-gsm8k,pocket-math,pocket-mgsm-zh,pocket-cmath"
    kept = call("repro", "eval", "pocket-instruct", "--benchmarks", suites, "--limit", "1",
                "--out", "kept")  # fmt: skip
    assert kept.returncode == 0, kept.stderr
    tasks = call("repro", "eval", "pocket-instruct", "--lm-eval", "repro_pocket_math",
                 "--limit", "1")  # fmt: skip
    assert tasks.returncode == 0, tasks.stderr


@pytest.mark.parametrize(
    ("program", "arguments", "code", "words"),
    [
        ("repro", ("report",), 2, "in its checkout, not in what pip installs"),
        ("repro", ("table", "deepseekmath-pocket"), 2, "in its checkout, not in what pip installs"),
        ("repro", ("check",), 2, "nothing to check: no other distribution"),
        ("repro", ("new", "mine", "--arxiv", "2501.01234"), 0, "for `repro list` to name it"),
        ("python", ("-m", "core.run.pocket"), 1, "in a checkout, `make pocket`"),
    ],
)
def test_what_is_the_checkouts_own_says_so(call, program, arguments, code, words):
    done = call(program, *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
