"""The demo on kernels that round otherwise leaves a clone clean and its tests green."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = (
    "tests/golden/test_notebook.py",
    "tests/unit/test_readme.py",
    "tests/unit/test_reproduce.py",
)


@pytest.mark.long
def test_the_demo_with_other_kernels_changes_nothing_that_tests_read(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    place = {name: value for name, value in os.environ.items() if not name.startswith("REPRO_")}
    place |= {"PYTHONPATH": str(clone), "OMP_NUM_THREADS": "1"}

    def run(*words, **variables):
        command = [sys.executable, "-m", *words]
        how = {"cwd": clone, "env": place | variables, "capture_output": True, "text": True}
        return subprocess.run(command, check=False, **how)

    demo = run("core.cli.main", "run", "deepseekmath-grpo", ATEN_CPU_CAPABILITY="default")
    assert demo.returncode == 0, demo.stderr
    (line,) = [line for line in demo.stdout.splitlines() if line.startswith("grpo, seed 0: ")]
    assert "identical to the published run" not in line
    tested = run("pytest", "-q", "-p", "no:cacheprovider", *READ)
    assert tested.returncode == 0, tested.stdout
    status = subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, text=True)
    assert status.stdout == ""
