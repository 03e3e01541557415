"""README.md has the tables that the committed records give, CITATION.cff this version."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from core.pages.runs import runs_table
from core.pages.verdicts import verdict_line
from core.paper.registry import find_paper
from core.records.record import read_records, standard
from core.verdicts.judge import judge
from eval.tables import render

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SLUG = "deepseekmath-grpo"


@pytest.fixture
def records():
    return standard(read_records(SLUG))


def test_what_one_seed_prints_is_what_its_record_gives(records):
    paper = find_paper(SLUG)
    (run,) = (
        r for r in records if r["kind"] == "run" and r["seed"] == 0 and r["arm"] == paper.main_arm
    )
    table = render(runs_table(paper, [run], "cpu"), "md")
    lines = [verdict_line(verdict) for verdict in judge(paper, [run])]
    same = f"{paper.main_arm}, seed 0: identical to the published run, to the last bit"
    path = f"report: runs/reports/{SLUG}/cpu/report.md"
    printed = "\n".join([table, same, *lines, path])
    assert f"```text\n{printed}\n```" in README


def test_the_table_of_claims_is_that_of_the_record_of_all_seeds(records):
    (claims,) = (record for record in records if record["kind"] == "claims")
    head = r"\| claim \| effect in points .*\n\| --- .*\n((?:\|.*\n)+)"
    (body,) = re.findall(head, README)
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in body.splitlines()]
    expected = [
        [f"{v['effect']:+.1f}", f"{v['low']:.1f} to {v['high']:.1f}", f"{n}", v["verdict"]]
        if (n := len(v["seeds"]))
        else ["exact", "", "", v["verdict"]]
        for v in claims["verdicts"]
    ]
    assert rows == expected


def test_the_readme_and_the_changelog_stay_short():
    assert len(README.encode()) <= 9_000
    assert (ROOT / "CHANGELOG.md").stat().st_size <= 12_000


def test_nothing_says_to_install_the_project_of_another_that_is_called_repro():
    files = [*ROOT.glob("*.md"), ROOT / "pyproject.toml", *(ROOT / "core").rglob("*.py")]
    files += [*(ROOT / "eval").rglob("*.py"), *(ROOT / "papers").rglob("*.py")]
    wrong = re.compile(r"(?<![-\w.])repro\[[a-z]|install repro(?!-papers)\b|version\(.repro.\)")
    assert [path for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert project["name"] in citation["authors"][0]["name"]
