"""A trained model and its card reach the hub, and what is in the way is said before training."""

import os
import subprocess
import sys

import pytest
from changed_settings import changed
from hub_server import serving  # pyright: ignore[reportMissingImports] - in tests/unit

PAPER = "deepseekmath-grpo"
NAME = ("--push-to-hub", "me/named")


BOTH = """
import os, sys
from pathlib import Path
from core.cli.main import app
for token in ("hf_of_nobody", "hf_of_a_test"):
    os.environ["HF_TOKEN"] = token
    try:
        app()
    except SystemExit as end:
        trained = len([*Path(os.environ["REPRO_ROOT"]).glob("runs/train-*")])
        print("ENDED", end.code, trained, file=sys.stderr)
"""


@pytest.mark.long
def test_a_model_and_its_card_are_sent_after_the_run(root, settings):
    """Two commands in one process: the hub does not know the user of the first."""
    few = ("benchmarks=gsm8k", "heldout_problems=0", "max_steps=1")
    asked = ("run", PAPER, *NAME, "--jobs", 1, *changed(settings, *few))
    with serving() as (server, env):
        command = [sys.executable, "-c", BOTH, *map(str, asked)]
        place = {**os.environ, **env, "REPRO_ROOT": str(root), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=place, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    unknown = lines.index("ENDED 2 0")
    assert lines[unknown - 1].startswith("HubError: nothing was uploaded (")
    assert lines[-1] in ("ENDED 0 1", "ENDED 1 1"), done.stderr
    assert lines[-2].startswith("pushed: http://127.0.0.1:")
    (commit,) = server.commits
    sent = {line["value"]["path"] for line in commit if line["key"] == "file"}
    assert {"README.md", "model.safetensors", "tokenizer.json"} <= sent


@pytest.mark.parametrize(
    ("paper", "given", "message"),
    [
        (PAPER, ("--push-to-hub", "named"), "expected OWNER/NAME"),
        (PAPER, ("--push-to-hub", "me/na med"), "--push-to-hub me/na med: "),
        ("cmath", NAME, "trains no model"),
        (PAPER, (*NAME, "--sweep", "max_steps=1,2"), "the run that you choose"),
        (PAPER, (*NAME, "--claims"), "the run that you choose"),
        (PAPER, ("push_to_hub=true",), "give --push-to-hub OWNER/NAME"),
        (PAPER, ("hub_model_id=me/named",), "give --push-to-hub OWNER/NAME"),
    ],
)
def test_what_cannot_be_sent_is_refused_first(paper, given, message, repro, root):
    result = repro("run", paper, *given)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert message in line
    assert line.startswith("BadValue: ")
    assert not list(root.glob("runs/*-*"))
