"""With `--json`, standard output is JSON whatever libraries and their processes print there."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from run_records import run_record

import core.cli
from core.bench import commands
from core.cli.main import app

PAPER = "deepseekmath-grpo"
ALONE = """
import os, subprocess, sys
from core.cli.output import only_data_on_stdout, print_columns, print_json, print_text
print("before")
sys.stdout.reconfigure(write_through=False)
held = sys.stdout
with only_data_on_stdout():
    print("a library")
    print("a library that held the stream", file=held)  # which keeps it in its buffer
    os.write(1, b"a library in C\\n")
    subprocess.run(["echo", "a process"], check=True)
    print_text("text")
    print_json({"a": 1})
    print_columns(("head",), [("cell",)])
print("after")
"""


@pytest.fixture
def outputs(root):
    """A file of answers to a benchmark."""
    path = root / "outputs.jsonl"
    path.write_text('{"id": "pocket-gsm8k-test-0", "output": "The answer is 1."}\n')
    return path


def arguments_of(model, outputs, settings):
    """Every command that takes `--json` and needs no run, with what makes it quick."""
    suite = "pocket-gsm8k"
    return {
        "bench": [("commands",)],
        "list": [()],
        "runs": [()],
        "clean": [()],
        "show": [(PAPER,)],
        "diff": [(PAPER, "trl")],
        "plan": [(PAPER, "--gpus", "8xH100", *settings)],
        "score": [(outputs, "--benchmark", suite), (outputs, "--benchmark", suite, "--explain")],
        "report": [()],
        "publish": [(PAPER, "--accept")],
        "table": [("deepseekmath",)],
        "check": [()],
        "doctor": [("--verifier", suite)],
        "eval": [
            (model, "--benchmarks", suite, "--limit", "1", "--max-tokens", "2"),
            ("--benchmarks", suite, "--power"),
            ("--benchmarks", suite, "--contamination", outputs.with_name("train.jsonl")),
        ],
    }


@pytest.mark.usefixtures("noisy")
def test_every_command_with_json_prints_json_alone(
    repro, tiny_model, outputs, settings, monkeypatch
):
    monkeypatch.setattr(commands, "REPEATS", 1)  # of what `bench` measures
    outputs.with_name("train.jsonl").write_text('{"question": "What is 1 + 1?"}\n')
    for name, calls in arguments_of(tiny_model, outputs, settings).items():
        if name == "report":  # after `bench`, which copies the runs that there are
            run_record(3)
        for arguments in calls:
            found = repro(name, *arguments, "--json")
            assert found.exit_code in (0, 1), (name, found.output)
            assert json.loads(found.stdout) is not None, name
            assert "a library says" in found.stderr


def test_these_are_all_commands_that_take_json_and_their_help_says_so(repro):
    verbs = typer.main.get_command(app).commands
    known = arguments_of("", Path("outputs"), ())
    takes = {n for n, c in verbs.items() if any("--json" in p.opts for p in c.params)}
    after_a_run = {
        "run",
        "compare",
        "profile",
    }  # in test_run.py, test_found_runs.py, test_profile.py
    assert takes == {*known} | after_a_run
    for name in takes:
        assert "--json" in repro(name, "--help").stdout


def test_descriptor_1_is_kept_for_data_too():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout == 'before\ntext\n{\n  "a": 1\n}\nhead\ncell\nafter\n'
    assert done.stderr.splitlines() == [
        "a library",
        "a library in C",
        "a process",
        "a library that held the stream",
    ]


def test_commands_print_through_what_keeps_standard_output_for_data():
    for path in Path(core.cli.__file__).parent.glob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        bare = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
        assert all(any(k.arg == "file" for k in call.keywords) for call in bare), path.name
