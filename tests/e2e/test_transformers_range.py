"""The oldest and the newest transformers that pyproject.toml allows pass a part of the tests."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
LINES = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
(RANGE,) = (r for r in map(Requirement, LINES) if r.name == "transformers")
(OLDEST,) = (bound.version for bound in RANGE.specifier if bound.operator == ">=")

MARK = "pytest.mark." + "versions"
pytestmark = pytest.mark.long


@pytest.mark.parametrize("wanted", [f"transformers=={OLDEST}.*", str(RANGE)])
def test_an_end_of_the_range_passes_the_tests_marked_versions(wanted, tmp_path):
    probe = subprocess.run([*PIP, "index", "versions", "transformers"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"NO PACKAGE REGISTRY: {wanted} was NOT tested")
    venv.create(tmp_path, symlinks=True)
    (site,) = (tmp_path / "lib").glob("python*/site-packages")
    # What is not installed into the environment, torch above all, is taken from this one.
    (site / "shared.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = ("--python", tmp_path, "install", "-q", "--no-compile", "--upgrade", wanted)
    subprocess.run([*PIP, *install], check=True)
    python = tmp_path / "bin" / "python"
    code = "from importlib.metadata import version; print(version('transformers'))"
    installed = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert installed.stdout.strip() in Requirement(wanted).specifier
    files = [f for f in (ROOT / "tests").rglob("test_*.py") if MARK in f.read_text()]
    command = [python, "-m", "pytest", "-m", "versions", "-p", "no:cacheprovider", *files]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"transformers {installed.stdout}{done.stdout[-5000:]}"
