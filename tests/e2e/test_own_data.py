"""A run on rows of one's own, from a file to a record."""

import json

import pytest

from core.records.record import read_records
from core.records.schema import runs_of

PAPER = "deepseekmath-grpo"
SYSTEM = "be brief."


def test_a_run_on_a_file_of_json_lines(repro, root, settings):
    file = root / "sums.jsonl"
    rows = [{"problem": f"{i} + 1?", "answer": str(i + 1), "level": i % 3} for i in range(12)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = (f"data={file}", "prompt_template=of {{ level }}: {{ problem }}")
    done = repro("run", PAPER, *settings, *asked, f"system_prompt={SYSTEM}", "--jobs", "1")
    assert done.exit_code == 0, done.output
    (run,) = runs_of(read_records(PAPER))
    assert run["data"]["name"] == str(file)
    assert run["data"]["rows"] == 12
    assert run["overrides"]["system_prompt"] == SYSTEM
    assert run["train"]["steps"] == 3
    (made,) = (root / "runs").glob("data-*/rows.jsonl")
    first = json.loads(made.read_text(encoding="utf-8").splitlines()[0])
    assert first["prompt"] == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "of 0: 0 + 1?"},
    ]
    for note in (root / "runs").glob("eval-*/done.json"):
        assert json.loads(note.read_text())["inputs"]["decoding"]["system"] == SYSTEM


@pytest.mark.parametrize(
    ("rows", "asked", "message"),
    [
        ('{"prompt": "1?", "answer": "1"}\n[1]\n', "", "no JSON object but '[1]'"),
        ('{"prompt": "1?", "answer": "1"}\n', "", "heldout_problems=4: the data has 1 rows only"),
        ("", "hub:me/nothing", "cannot load me/nothing from the hub"),
    ],
)
def test_rows_that_cannot_be_had_are_one_line_before_any_model_loads(
    rows, asked, message, repro, root, settings, monkeypatch
):
    monkeypatch.chdir(root)
    (root / "rows.jsonl").write_text(rows)
    done = repro("run", PAPER, *settings, "--jobs", 2, f"data={asked or 'rows.jsonl'}")
    assert done.exit_code == 2
    *before, said = done.stderr.splitlines()
    assert message in said
    assert all(line.startswith(("claim ", "data: ")) for line in before)
    assert {path.name.strip(".").split("-")[0] for path in root.glob("runs/*-*")} <= {"data"}
