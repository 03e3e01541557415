"""Another distribution's paper is installed by pip and runs like ours."""

import json
import os
import shutil
import subprocess

import pytest

from core.records.record_text import parse_record

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "repro-plugin-test"
version = "0.1"
[project.entry-points."repro.papers"]
low-kl = "low_kl_paper"
own-sums = "own_sums.paper"
[project.entry-points."repro.data"]
sums = "own_sums.paper:ROWS"
[project.entry-points."repro.benchmarks"]
sums-suite = "own_sums.paper:SUITE"
sums-twin = "own_sums.paper:TWIN"
[tool.setuptools]
py-modules = ["low_kl_paper"]
packages = ["own_sums"]
[tool.setuptools.package-data]
"*" = ["*.jsonl", "*/*.jsonl"]
"""
MODULE = '''
"""A paper of another distribution: GRPO with hardly any KL."""

from core.claims import START, Claim, score
from core.paper import Paper, cite
from core.rewards import Accuracy


def brief(completions, **_):
    return [float(len(completion[-1]["content"]) < 9) for completion in completions]


PAPER = Paper(
    slug="low-kl",
    title="Low KL",
    arxiv="0000.00000",
    family="grpo",
    base="deepseekmath-grpo",
    config=(cite("s1", beta=0.001),),
    rewards=(Accuracy(), brief),
    model="owner/name",
    data="gsm8k",
    benchmarks=("gsm8k",),
    arms={"low-kl": {}},
    claims=(
        Claim("better", "Helps.", score("gsm8k").of("low-kl") > score("gsm8k").of(START)),
    ),
)
'''
OWN = '''
"""A paper with its own data, reward, benchmark and small twin."""

from pathlib import Path

from core.data.data_set import DataSet
from core.data.sources import File
from core.paper import Paper, cite
from eval.sets.benchmarks import Benchmark

HERE = Path(__file__).parent
ROWS = DataSet(name="sums", columns=("prompt", "answer"), source=File(HERE / "rows.jsonl"), n=16)
SUITE = Benchmark(name="sums-suite", title="Sums", n=9, folder=HERE / "suite")
TWIN = Benchmark(name="sums-twin", title="Few sums", n=3, folder=HERE / "twin")


def digits(completions, **_):
    return [float(completion[-1]["content"].isdigit()) for completion in completions]


PAPER = Paper(
    slug="own-sums",
    title="Own sums",
    arxiv="0000.00000",
    family="grpo",
    config=(cite("s1", beta=0.0),),
    rewards=(digits,),
    model="owner/name",
    data="sums",
    benchmarks=("sums-suite",),
    profiles={"cpu": {"data": "sums", "twins": {"sums-suite": "sums-twin"}}},
)
'''


@pytest.fixture(scope="module")
def target(tmp_path_factory, pip_install):
    """A folder with the distribution, installed by pip."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "low_kl_paper.py").write_text(MODULE)
    own = source / "own_sums"
    for folder in ("suite", "twin"):
        (own / folder).mkdir(parents=True)
    (own / "__init__.py").touch()
    (own / "paper.py").write_text(OWN)
    asked = [
        {"prompt": [{"role": "user", "content": f"{i}+1="}], "answer": str(i + 1)}
        for i in range(16)
    ]
    (own / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    for folder, n in (("suite", 9), ("twin", 3)):
        problems = [
            {"id": f"{folder}-{i}", "question": f"{i}+2=", "answer": str(i + 2), "language": "en"}
            for i in range(n)
        ]
        text = "".join(json.dumps(row) + "\n" for row in problems)
        (own / folder / "test.jsonl").write_text(text)
    pip_install(source, target)
    return target


@pytest.fixture
def repro(target, tmp_path, forked):
    """The command line with the distribution on the path."""
    place = {**os.environ, "PYTHONPATH": str(target), "REPRO_ROOT": str(tmp_path)}

    def call(*arguments):
        command = [forked, *arguments]
        return subprocess.run(command, env=place, capture_output=True, text=True, check=False)

    return call


@pytest.fixture
def file(target, tmp_path):
    """The same as a file with rows and suites beside it, which nobody installs."""
    shutil.copytree(target / "own_sums", tmp_path / "mine")
    return tmp_path / "mine" / "paper.py"


@pytest.fixture
def uninstalled(tmp_path, forked):
    """The command line where no other distribution is installed."""

    def call(*arguments, **environment):
        command = [forked, *map(str, arguments)]
        place = {**os.environ, "REPRO_ROOT": str(tmp_path), **environment}
        return subprocess.run(command, env=place, capture_output=True, text=True, check=False)

    return call


def runs(root, slug):
    """The records of a paper's runs."""
    written = [
        parse_record(p.read_text()) for p in (root / "runs" / "results" / slug).glob("*.json")
    ]
    return [record for record in written if record["kind"] == "run"]


@pytest.mark.long
def test_a_plug_in_brings_its_own_data_reward_benchmark_and_twin(repro, tmp_path, settings):
    result = repro("run", "own-sums", "--jobs", "1", *settings)
    assert result.returncode == 0, result.stderr
    (run,) = runs(tmp_path, "own-sums")
    assert (run["data"]["name"], run["data"]["rows"]) == ("sums", 16)
    assert [(s["benchmark"], s["mirrors"], s["n"]) for s in run["scores"]] == [
        ("sums-twin", "sums-suite", 3)
    ]
    assert run["config"]["rewards"]["value"] == ["own_sums.paper.digits"]
    assert repro("check", "own-sums").returncode == 0


@pytest.mark.long
def test_a_plug_in_is_installed_listed_planned_and_run(repro, tmp_path, settings):
    listed = repro("list")
    assert "low-kl" in listed.stdout
    assert "repro-plugin-test" in listed.stdout
    result = repro("run", "low-kl", "--jobs", "1", *settings)
    assert result.returncode == 0, result.stderr
    assert "+ low-kl" in result.stdout
    assert "no room    better" in result.stdout
    (run,) = runs(tmp_path, "low-kl")
    rewards = ["Accuracy(right=1.0, wrong=0.0)", "low_kl_paper.brief"]
    assert run["config"]["rewards"]["value"] == rewards
    planned = repro("plan", "low-kl", "--json", *settings)
    # Its reward is a function, which lies at another place in the memory of every process.
    states = {s["stage"]: s["state"] for s in json.loads(planned.stdout)["stages"]}
    assert set(states.values()) == {"done"}


@pytest.mark.long
def test_a_file_is_a_plug_in_without_being_installed(uninstalled, file, tmp_path, settings):
    result = uninstalled("run", file, "--jobs", "2", "--seeds", "2", *settings)
    assert result.returncode == 0, result.stderr
    found = runs(tmp_path, "own-sums")
    assert sorted(run["seed"] for run in found) == [0, 1]
    assert {run["data"]["name"] for run in found} == {"sums"}
    assert {(s["benchmark"], s["mirrors"], s["n"]) for r in found for s in r["scores"]} == {
        ("sums-twin", "sums-suite", 3)
    }
    assert {one for run in found for one in run["config"]["rewards"]["value"]} == {
        "plugin_paper.digits"
    }
    assert uninstalled("check", "own-sums", REPRO_PLUGINS=str(file)).returncode == 0
    assert "own-sums" in uninstalled("--plugin", file, "list").stdout
    assert "own-sums" not in uninstalled("list").stdout
    named = uninstalled("--plugin", file, "score", file, "--benchmark", "sums-siute")
    assert "did you mean sums-suite" in named.stderr


BAD = {
    "nothing": ("x = 1", "holds no paper: expected PAPER"),
    "an error": ("import nothing_such", "import failed with ModuleNotFoundError"),
    "an end": ("raise SystemExit(3)", "import failed with SystemExit: 3"),
    "no Python": ("x =", "import failed with SyntaxError"),
    "ours": ("from papers.dapo import PAPER", "dapo is provided twice"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_is_no_plug_in_is_one_line(what, uninstalled, tmp_path):
    text, message = BAD[what]
    path = tmp_path / "mine.py"
    path.write_text(text)
    result = uninstalled("show", path)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    absent = uninstalled("--plugin", tmp_path / "nowhere.py", "list")
    assert (absent.returncode, absent.stderr.count("\n")) == (2, 1)
    assert "no such file" in absent.stderr
