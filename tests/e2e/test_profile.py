"""`repro profile` with the loss that the documentation shows, on one probe."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.main import app
from core.records.record import read_records
from core.run.leftovers import leftovers

PAGE = Path(__file__).parents[2] / "docs" / "profiles.md"
SMALL = ("--only", "learns", "--seeds", "3")


def call(*arguments):
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture
def loss(root):
    """The file of the documentation's own loss."""
    (text,) = re.findall(r"```python\n(# my_loss.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert len([line for line in text.splitlines() if line.strip()]) <= 10
    file = root / "my_loss.py"
    file.write_text(text)
    return file


@pytest.mark.long
def test_a_loss_of_ten_lines_gets_its_page_and_its_runs_are_not_repeated(loss, root):
    first = call("profile", f"{loss}:Squared", *SMALL, "--json")
    assert first.exit_code == 0, first.output
    shown = json.loads(first.stdout)
    assert (shown["algorithm"], shown["against"]) == ("Squared", "grpo")
    (probe,) = shown["probes"]
    assert probe["name"] == "learns"
    assert probe["value"] > 45  # starts are right in 34 of 100 answers
    assert probe["against"] > 45
    assert probe["score"]["low"] < probe["score"]["value"] < probe["score"]["high"]
    page = Path(shown["page"])
    for name in ("Squared.md", "Squared.html", "Squared.svg", "Squared-curves.svg"):
        assert (page.parent / name).is_file()
    trained = {path: path.stat().st_mtime_ns for path in root.glob("runs/train-*/done.json")}
    again = call("profile", f"{loss}:Squared", *SMALL)
    assert again.exit_code == 0
    assert re.search(r"^learns +\d", again.stdout, re.MULTILINE)
    assert "interquartile mean of the scores" in again.stdout
    after = {path: path.stat().st_mtime_ns for path in root.glob("runs/train-*/done.json")}
    assert after == trained
    assert [one.path.name for one in leftovers()] == []  # nor are trials without a record
    records = {record["arm"]: record for record in read_records("profile")}
    assert records.keys() == {"Squared", "grpo"}
    compared = call("compare", *(records[name]["digest"] for name in ("Squared", "grpo")))
    assert compared.exit_code == 0
    assert re.search(r"^learns +\d", compared.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("dappo",), "UnknownName: no algorithm 'dappo': did you mean dapo"),
        (("dapo", "--seeds", "2"), "BadValue: --seeds 2: expected 3 to 16"),
        (("dapo", "--only", "learn"), "UnknownName: no probe 'learn': did you mean learns"),
        (("cmath",), "BadValue: cmath: the family evaluation can be trained in no world"),
        (
            ("dft", "--only", "limit"),
            "BadValue: dft: none of these probes is trained by the family",
        ),
        (("dapo", "--against", "grppo"), "UnknownName: no algorithm 'grppo': did you mean grpo"),
    ],
)
@pytest.mark.usefixtures("root")
def test_what_cannot_be_profiled_is_refused_before_anything_runs(arguments, line):
    refused = call("profile", *arguments)
    assert refused.exit_code == 2
    assert line in refused.stderr
    assert refused.stdout == ""
