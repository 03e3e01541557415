"""The Dockerfile names what is there: files, extras, versions; no test here builds an image."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TEXT = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text())
STEPS = [line.split(" ", 1) for line in TEXT.splitlines() if line and not line.startswith("#")]


def steps(name):
    """What stands after an instruction, wherever it is given."""
    return [rest for instruction, rest in STEPS if instruction == name]


def value(name):
    """The default of a build argument."""
    (found,) = (arg for arg in steps("ARG") if arg.startswith(f"{name}="))
    return found.partition("=")[2].strip('"')


def test_it_is_installed_from_what_the_context_has():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    assert all((ROOT / name).exists() for name in kept)
    packages = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    needed = {name.removesuffix("*") for name in packages} | {PROJECT["project"]["readme"]}
    assert kept == needed | {"pyproject.toml", "constraints.txt"}
    assert steps("COPY") == ["pyproject.toml constraints.txt ./", ". ."]


def test_pytorch_and_dependencies_are_not_installed_again_where_code_changes():
    order = [rest for _, rest in STEPS]
    (torch,) = (rest for rest in order if '"$TORCH"' in rest)
    (dependencies,) = (rest for rest in order if "-r requirements.txt" in rest)
    (ours,) = (rest for rest in order if "pip install --no-deps ." in rest)
    wanted = [torch, "pyproject.toml constraints.txt ./", dependencies, ". .", ours]
    assert [rest for rest in order if rest in wanted] == wanted


def test_its_python_and_its_pytorch_are_those_of_the_project():
    (version,) = re.findall(r"python:([\d.]+)-slim", TEXT)
    assert version in SpecifierSet(PROJECT["project"]["requires-python"])
    assert value("TORCH") in (ROOT / "constraints.txt").read_text().splitlines()
    bases = {base.split(" AS ")[-1] for base in steps("FROM")}
    assert {"cpu", "cuda", "${DEVICE}"} == bases
    assert value("DEVICE") == "cpu"


def test_its_requirements_are_the_project_s_but_pytorch_and_with_its_extras():
    (code,) = re.findall(r'python -c "(import [^"]*)" \$EXTRAS', TEXT)
    extras = value("EXTRAS").split()
    command = [sys.executable, "-c", code, *extras]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    optional = PROJECT["project"]["optional-dependencies"]
    lists = [PROJECT["project"]["dependencies"], *(optional[extra] for extra in extras)]
    needed = {line for lines in lists for line in lines}
    assert {Requirement(line).name for line in needed - set(done.stdout.splitlines())} == {"torch"}


def test_it_starts_the_command_as_a_user_without_rights_and_has_the_sandbox():
    assert steps("ENTRYPOINT") == ['["repro"]']
    assert "repro" in PROJECT["project"]["scripts"]
    assert steps("USER") == ["repro"]
    assert STEPS.index(["USER", "repro"]) > max(
        i for i, step in enumerate(STEPS) if step[0] == "RUN"
    )
    (installed,) = (rest for rest in steps("RUN") if "bubblewrap" in rest)
    assert "libseccomp2" in installed


def test_a_linter_finds_nothing():
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which(
        "hadolint"
    )
    if hadolint is None:
        pytest.skip("NO HADOLINT: the Dockerfile was not linted; `make dev` installs it")
    command = [hadolint, "--no-color", "--failure-threshold", "warning", ROOT / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
