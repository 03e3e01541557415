"""The ranges of pyproject.toml and the versions that constraints.txt pins within them."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRA = [Requirement(line) for lines in PROJECT["optional-dependencies"].values() for line in lines]
PINS = {
    pin.name: pin.specifier
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if not line.startswith("#")
    for pin in [Requirement(line)]
}


def test_constraints_pin_one_version_of_each_package():
    assert {tuple(bound.operator for bound in pin) for pin in PINS.values()} == {("==",)}


@pytest.mark.parametrize(
    "needed", [r for r in NEEDED + EXTRA if r.name != PROJECT["name"]], ids=str
)
def test_what_is_pinned_lies_in_the_range_of_the_project(needed):
    (pin,) = PINS[canonicalize_name(needed.name)]
    assert pin.version in needed.specifier


@pytest.mark.parametrize("needed", NEEDED, ids=str)
def test_no_dependency_allows_one_version_only(needed):
    assert "==" not in {bound.operator for bound in needed.specifier}


def test_every_torch_from_2_8_and_later_transformers_are_allowed():
    allowed = {needed.name: needed.specifier for needed in NEEDED}
    assert all(version in allowed["torch"] for version in ("2.8.0", "2.13.0+cu130", "2.14.0"))
    assert "5.99.0" in allowed["transformers"]
    assert "6.0.0" not in allowed["transformers"]


def test_make_installs_what_is_pinned():
    lines = (ROOT / "Makefile").read_text().splitlines()
    (install,) = (line for line in lines if "--editable" in line)
    assert " -c constraints.txt " in install
    assert all("constraints.txt" in line for line in lines if line.startswith("$(VENV)/."))
