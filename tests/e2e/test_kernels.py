"""One kernel path computes a run, whichever process trains it, and is part of its key."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from changed_settings import changed

from core.stages.kernels import KERNELS, processor, processor_text

AVX2 = " avx2 " in processor_text()
pytestmark = pytest.mark.skipif(not AVX2, reason="the processor has no AVX2")
STARTED = (sys.executable, "-m", "core.cli.main")
LATE = "import torch; torch.ones(9).exp(); from core.stages.kernels import check_kernels as check\n"


def unpinned(**variables):
    """The environment of somebody who chose no kernels."""
    return {k: v for k, v in os.environ.items() if k not in KERNELS} | variables


def repro(root, *arguments, **variables):
    return subprocess.run(
        [*STARTED, *map(str, arguments)],
        env=unpinned(REPRO_ROOT=str(root), **variables),
        capture_output=True,
        text=True,
    )


def trained(root):
    """The folders of the trainings, and what they came to."""
    notes = root.glob("runs/train-*/done.json")
    return {n.parent.name: json.loads(n.read_text())["outputs"]["weights"] for n in notes}


def keys(*arguments, **variables):
    plan = repro(".", "plan", "deepseekmath-grpo", "--json", *arguments, **variables)
    return {row["stage"]: row["key"] for row in json.loads(plan.stdout)["stages"]}


@pytest.mark.long
def test_parent_and_children_train_the_same_weights_under_the_same_key(tmp_path, settings):
    few = changed(settings, "max_steps=1", "heldout_problems=0")
    for jobs in (1, 2):  # this process trains, and those that it starts
        done = repro(tmp_path / str(jobs), "run", "deepseekmath-grpo", *few, "--jobs", jobs)
        assert done.returncode in (0, 1), done.stderr
    assert "[grpo 0]" in done.stderr
    assert trained(tmp_path / "1") == trained(tmp_path / "2") != {}
    files = (tmp_path / "1").glob("runs/results/deepseekmath-grpo/*.json")
    (run,) = (one for one in map(json.loads, map(Path.read_text, files)) if one["kind"] == "run")
    acted = run["train"]["kernels"]
    assert acted["torch"] == "AVX2"
    assert acted["processor"] == processor()
    assert acted["rounding"]


@pytest.mark.long
def test_kernels_that_act_are_in_the_key_of_what_a_processor_computes():
    pinned, plain = keys(), keys(ATEN_CPU_CAPABILITY="default")
    changed = {stage for stage, key in pinned.items() if plain[stage] != key}
    assert {"start", "train", "eval"} <= changed
    assert "data" not in changed


def test_kernels_that_are_asked_for_are_those_that_are_pinned():
    shown = "import core.cli, os; print({name: os.environ.get(name) for name in %r})" % [*KERNELS]
    for asked in ({}, {"ATEN_CPU_CAPABILITY": "avx2"}):
        command, place = [sys.executable, "-c", shown], unpinned(**asked)
        assert subprocess.check_output(command, env=place, text=True) == f"{KERNELS}\n"


@pytest.mark.long
def test_kernels_chosen_too_late_are_refused():
    late = LATE + "check()"
    wrong = "default"
    chosen = f"import os; os.environ['ATEN_CPU_CAPABILITY'] = {wrong!r}; check()"
    for code, found in ((late, ""), (LATE + chosen, f"ATEN_CPU_CAPABILITY={wrong}, but torch")):
        done = subprocess.run([sys.executable, "-c", code], env=unpinned(), capture_output=True)
        assert found in done.stderr.decode()
        assert (done.returncode != 0) == bool(found)
