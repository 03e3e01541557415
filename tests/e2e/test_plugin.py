"""Another distribution's paper is installed by pip and runs like ours."""

import json
import os
import subprocess
import sys

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "repro-plugin-test"
version = "0.1"
[project.entry-points."repro.papers"]
low-kl = "low_kl_paper"
[tool.setuptools]
py-modules = ["low_kl_paper"]
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


def test_a_plug_in_is_installed_listed_planned_and_run(tmp_path, settings):
    source, target, root = tmp_path / "source", tmp_path / "target", tmp_path / "root"
    for folder in (source, root):
        folder.mkdir()
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "low_kl_paper.py").write_text(MODULE)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", str(target), str(source)], check=True)
    place = {**os.environ, "PYTHONPATH": str(target), "REPRO_ROOT": str(root)}

    def repro(*arguments):
        command = [sys.executable, "-m", "core.cli.main", *arguments]
        return subprocess.run(command, env=place, capture_output=True, text=True, check=False)

    listed = repro("list")
    assert "low-kl" in listed.stdout
    assert "repro-plugin-test" in listed.stdout
    result = repro("run", "low-kl", "--jobs", "1", *settings)
    assert result.returncode == 0, result.stderr
    assert "+ low-kl" in result.stdout
    assert "undecided  better" in result.stdout
    written = [json.loads(p.read_text()) for p in (root / "results" / "low-kl").glob("*.json")]
    (run,) = [record for record in written if record["kind"] == "run"]
    assert len(written) == 2
    rewards = ["Accuracy(right=1.0, wrong=0.0)", "low_kl_paper.brief"]
    assert run["config"]["rewards"]["value"] == rewards
    planned = repro("plan", "low-kl", "--json", *settings)
    # Its reward is a function, which lies at another place in the memory of every process.
    states = {s["stage"]: s["state"] for s in json.loads(planned.stdout)["stages"]}
    assert set(states.values()) == {"done"}
