"""CONTRIBUTING.md describes the tree that is there: its rooms, its floors and its files."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def rooms_in_the_plan():
    """Each folder of the plan by its path, as the indents say."""
    plan = TEXT.split("```\n")[3]
    above: list[str] = []
    for indent, name in re.findall(r"^( *)(\w+)/ ", plan, re.MULTILINE):
        above = [*above[: len(indent) // 2], name]
        yield "/".join(above)


def rooms_in(folder):
    """The packages right in a folder."""
    return {path.parent.relative_to(ROOT).as_posix() for path in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("folder", ["core", "core/stages", "eval"])
def test_the_plan_names_every_room_and_none_that_is_not_there(folder):
    named = {room for room in rooms_in_the_plan() if room.rpartition("/")[0] == folder}
    assert named == rooms_in(ROOT / folder)


def test_the_floors_are_those_that_are_checked():
    (said,) = re.findall(r"^(cli > [^:]*):", TEXT, re.MULTILINE)
    floors = [set(re.split(r",\s+", floor)) for floor in re.split(r"\s+>\s+", said)]
    layers = next(one["layers"] for one in LAYERS if one["name"] == "floors of core")
    assert floors == [set(layer.replace("core.", "").split(" | ")) for layer in layers]


def test_every_file_that_is_named_is_there():
    named = set(re.findall(r"`((?:core|eval|papers|tests)/[\w/.]*)`", TEXT))
    assert len(named) > 30
    assert {path for path in named if not (ROOT / path).exists()} == set()
