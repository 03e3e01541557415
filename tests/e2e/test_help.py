"""`--help` leads to what a user wants to do, and shows how each command is typed."""

import shlex
from typing import Any

import pytest
import typer

from core.cli.main import MENU, app
from core.paper.registry import find_paper
from core.settings.resolve import resolve

GROUP: Any = typer.main.get_command(app)
SHOWN = {name: one for name, one in GROUP.commands.items() if not one.hidden}


def test_commands_stand_under_what_one_wants_to_do_the_first_thing_first(repro):
    shown = repro("--help").stdout.split("Show this message and exit.")[1]
    listed = {}
    for part in shown.strip().split("\n\n"):
        section, *lines = part.splitlines()
        listed[section.rstrip(":")] = [line.split()[0] for line in lines]
    assert listed == {section: list(verbs) for section, verbs in MENU.items()}
    assert next(iter(listed.values()))[0] == "run"
    assert [section.split()[0] for section in listed][:4] == ["Run", "Show", "Score", "Add"]
    assert sorted(name for names in listed.values() for name in names) == sorted(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_each_help_has_one_example_that_can_be_typed(name, repro):
    help_ = repro(name, "--help").stdout
    (line,) = [line for line in help_.splitlines() if "repro " in line and "Example: " in line]
    program, verb, *words = shlex.split(line.partition("Example: ")[2])
    assert (program, verb) == ("repro", name)
    given = SHOWN[name].make_context(name, words).params
    if "my-paper" not in words and isinstance(given.get("paper"), str):
        asked = tuple(given.get("settings") or ())
        assert resolve(find_paper(given["paper"]), scale=given.get("at") or "cpu", arguments=asked)
