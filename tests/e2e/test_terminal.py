"""What a person sees: tables drawn and verdicts coloured in a terminal, plain text in a pipe."""

import os
import pty
import re
import subprocess
import sys
from shutil import copytree

import pytest

TABLE = "**A caption**\n\n| Model | Score |\n| --- | ---: |\n| one | 1.0 |\n"
SHOWN = f"""
from core.cli.output import print_columns, print_markdown, print_verdicts
print_markdown({TABLE!r})
print_verdicts(["held       one [x]  +1", "refuted    two  -1"])
print_columns(("name", "text"), [("a", "word " * 30), ("b", "[red]")])
"""
QUIET = """
import os, subprocess, sys
from core.cli.output import only_errors_on_stderr, print_text, tell
from eval.errors import BadValue
with only_errors_on_stderr():
    print("progress", file=sys.stderr)
    os.write(2, b"a library in C\\n")
    subprocess.run(["sh", "-c", "echo a process >&2"], check=True)
    print_text("data")
    tell([BadValue("an error")])
print("after", file=sys.stderr)
"""
CODES = re.compile(r"\x1b\[[0-9;]*m")


def in_terminal(*command, columns=40):
    """What a command shows in a terminal of so many columns."""
    ours, theirs = pty.openpty()
    place = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    with subprocess.Popen(command, stdout=theirs, stdin=theirs, env=place) as process:
        os.close(theirs)
        shown = bytearray()
        while chunk := read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


def read(terminal):
    """More of what is shown; nothing once the command has ended, which Linux tells as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def test_a_terminal_has_tables_and_colours_and_keeps_its_width():
    shown = in_terminal(sys.executable, "-c", SHOWN)
    assert "\x1b[32mheld       one [x]  +1\x1b[0m" in shown
    assert "\x1b[31mrefuted    two  -1\x1b[0m" in shown
    lines = CODES.sub("", shown).splitlines()
    assert max(map(len, lines)) <= 40
    assert not any("|" in line for line in lines)
    assert any("───" in line for line in lines)
    assert sum(line.count("word") for line in lines) == 30
    assert any(line.split() == ["b", "[red]"] for line in lines)


def test_a_pipe_has_the_text_itself():
    shown = subprocess.check_output([sys.executable, "-c", SHOWN], text=True)
    assert shown.startswith(TABLE)
    assert "\nheld       one [x]  +1\nrefuted    two  -1\n" in shown
    assert f"\na     {'word ' * 30}".rstrip() in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("columns", [60, 120])
def test_a_list_fits_the_terminal(columns):
    shown = in_terminal(sys.executable, "-m", "core.cli.main", "list", columns=columns)
    lines = CODES.sub("", shown).splitlines()
    assert max(map(len, lines)) <= columns
    assert "deepseekmath-grpo" in "".join(shown.split()) or columns < 80


def test_a_quiet_command_prints_its_data_and_errors_alone():
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, check=True)
    assert done.stdout == "data\n"
    assert done.stderr == "BadValue: an error\nafter\n"


def test_a_quiet_run_ends_with_its_table(run_once, repro, root, settings):
    asked = ("run", "deepseekmath-grpo", "--jobs", "1", *settings)
    folder, loud = run_once(asked)
    copytree(folder, root, dirs_exist_ok=True)
    quiet = repro("--quiet", *asked)
    assert "rollout" in loud.stderr
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout.replace(f"{folder}/", f"{root}/")
    assert repro(*asked).stderr != ""


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "dapo", "torch_compile=true"),
        ("plan", "dapo", "--gpus", "8xH100"),
        ("doctor",),
        ("eval", "pocket-instruct", "--benchmarks", "pocket-gsm8k", "--limit", "1"),
        ("check", "dapo", "--retrain", "1"),
    ],
    ids=" ".join,
)
def test_a_command_that_must_load_torch_says_so_before_it_does(command, tmp_path):
    """Its first words come while no module of torch is loaded, so within the start of Python."""
    script = f"""
import sys
from core.cli import output
from core.cli.main import app

def say_loading():
    assert "torch" not in sys.modules
    print("LOADING", file=sys.stderr)
    sys.exit(7)

for name in ("checking", "evaluating", "loading", "run_options", "running", "tables"):
    setattr(sys.modules["core.cli." + name], "say_loading", say_loading)
app({command!r})
"""
    place = {**os.environ, "REPRO_ROOT": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=place)
    assert (done.returncode, done.stderr.splitlines()) == (7, ["LOADING"]), done.stderr
