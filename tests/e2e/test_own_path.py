"""A user's own way: a question of ten lines in README, and all that follows it in a folder."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from core.records.found import find_run, model_of
from core.records.places import record_files

README = Path(__file__).parents[2] / "README.md"
MINE = '''
"""A paper with its own data, reward, benchmark and small twin, and a claim."""

from pathlib import Path

from core.claims import Claim, late
from core.data.data_set import DataSet
from core.data.sources import File
from core.paper import Paper, cite
from eval.sets.benchmarks import Benchmark

HERE = Path(__file__).parent
LENGTH = late("completions/mean_length")
ROWS = DataSet(name="my-rows", columns=("prompt", "answer"), source=File(HERE / "rows.jsonl"), n=16)
SUITE = Benchmark(name="my-suite", title="My suite", n=9, folder=HERE / "suite")
TWIN = Benchmark(name="my-twin", title="My twin", n=3, folder=HERE / "suite")


def short(completions, **_):
    return [-float(len(completion[-1]["content"])) for completion in completions]


PAPER = Paper(
    slug="my-question",
    title="A question of mine",
    url="https://example.org/mine",
    family="grpo",
    config=(cite("unstated", beta=0.0),),
    rewards=(short,),
    model="owner/name",
    data="my-rows",
    benchmarks=("my-suite",),
    arms={"short": {}, "still": {"learning_rate": 0.0, "rate_factors": ()}},
    profiles={"cpu": {"data": "my-rows", "twins": {"my-suite": "my-twin"}, %s}},
    claims=(
        Claim(
            "shorter",
            "The reward shortens answers.",
            LENGTH.of("short") < LENGTH.of("still"),
        ),
    ),
)
'''


@pytest.fixture
def here(root, monkeypatch):
    """A folder outside the repository, in which the commands are given."""
    monkeypatch.chdir(root)
    monkeypatch.delenv("REPRO_ROOT")
    return root


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.long
def test_readme_leads_from_a_reward_and_rows_to_a_verdict_in_ten_lines(here, repro, settings):
    section = README.read_text().split("## Your own question")[1].split("\n## ")[0]
    _, code, command, shown = re.findall(r"```\w*\n(.*?)```", section, re.DOTALL)
    assert len([line for line in code.splitlines() if re.match("[^#]", line)]) <= 10
    (here / "brief.py").write_text(code)
    rows = [{"problem": f"{i}+1=", "answer": str(i + 1)} for i in range(32)]
    write_rows(here / "rows.jsonl", rows)
    program, *words = shlex.split(command.replace("\\\n", ""))
    assert program == "repro"
    printed = {word.partition("=")[0] for word in words}
    tiny = [word for word in settings if word.partition("=")[0] not in printed]
    given = ["max_steps=2" if word.startswith("max_steps=") else word for word in words]
    done = repro(*given, "--jobs", "1", *tiny)
    assert done.exit_code in (0, 1), done.output
    (verdict,) = [line for line in done.stdout.splitlines() if " briefer " in line]
    line = r"(held|refuted|tie|undecided|unhealthy) +briefer +[+-].* 3 seeds.*"
    assert re.fullmatch(line, verdict)
    assert re.search(f"^{line}$", shown, re.MULTILINE)


def test_a_run_comparison_site_and_card_outside_the_repository(here, repro, settings):
    """All of it in files: a paper with data, reward and benchmark, and a model folder."""
    (here / "suite").mkdir()
    problems = [
        {"id": f"p-{i}", "question": f"{i}+2=", "answer": str(i + 2), "language": "en"}
        for i in range(3)
    ]
    write_rows(here / "suite" / "test.jsonl", problems)
    asked = [[{"role": "user", "content": f"{i}+1="}] for i in range(32)]
    rows = [{"prompt": one, "answer": str(i + 1)} for i, one in enumerate(asked)]
    write_rows(here / "rows.jsonl", rows)
    own = dict(word.split("=") for word in settings if not word.startswith("learning_rate"))
    profile = ", ".join(
        f"{name!r}: {value if value.isdigit() else repr(value)}" for name, value in own.items()
    )
    (here / "mine.py").write_text(MINE % profile)
    plugged = ("--plugin", "mine.py")

    assert "my-question" in repro(*plugged, "list").stdout
    done = repro("run", "./mine.py", "--claims", "--seeds", "3", "--jobs", "1")
    assert done.exit_code in (0, 1), done.output
    assert "| + short " in done.stdout
    assert re.search(r"^(held|refuted|undecided) +shorter +[+-].* 3 seeds$", done.stdout, re.M)
    assert done.stdout.splitlines()[-1] == "report: runs/reports/my-question/cpu/report.md"
    assert all(path.is_relative_to(here / "runs" / "results") for path in record_files())

    listed = json.loads(repro(*plugged, "runs", "my-question", "--json").stdout)
    assert sorted((run["arm"], run["seed"]) for run in listed) == [
        (arm, seed) for arm in ("short", "still") for seed in range(3)
    ]
    one, other = [run["digest"] for run in listed if run["seed"] == 0]
    compared = json.loads(repro(*plugged, "compare", one, other, "--json").stdout)
    assert "learning_rate" in {row["name"] for row in compared["settings"]}
    assert [row["benchmark"] for row in compared["scores"]] == ["my-twin"]

    rendered = repro(*plugged, "report")
    assert rendered.exit_code == 0, rendered.output
    page = (here / "runs" / "reports" / "my-question" / "cpu" / "report.html").read_text()
    assert "A question of mine" in page
    assert "The reward shortens answers." in page
    assert "my-question" in (here / "runs" / "reports" / "index.html").read_text()
    refused = repro(*plugged, "publish", "my-question", "--accept")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "my-question is not published, nor is any other: derived: " in refused.stderr
    assert not (here / "results").exists()  # all arms end as one model

    card: Any = ModelCard.load(model_of(find_run(one)) / "README.md")
    assert {row.dataset_type for row in card.data.eval_results} == {"my-twin"}
    assert "https://example.org/mine" in card.text
    assert "The reward shortens answers." in card.text
