"""The pocket policy really reasons with programs: they run in a sandbox and their output counts."""

import json

import pytest


@pytest.mark.usefixtures("sandbox")
def test_programs_raise_the_score(repro, root):
    arguments = ("eval", "pocket-instruct", "--benchmarks", "pocket-gsm8k", "--limit", 40)
    rows = {}
    for mode in ("cot", "tir"):
        out = root / mode
        result = repro(*arguments, "--mode", mode, "--max-tokens", 96, "--out", out, "--json")
        assert result.exit_code == 0, result.output
        rows[mode] = {row["metric"]: row for row in json.loads(result.stdout)}
    assert "programs run in the sandbox" in result.stderr
    assert set(rows["tir"]) == {"top1", "program top1"}
    # Greedy answers of a fixed model to fixed problems: no chance is in these numbers.
    assert rows["tir"]["top1"]["value"] > rows["cot"]["top1"]["value"] + 10
    assert rows["tir"]["program top1"]["value"] > 50
    counts = {
        row["metric"]: (row["programs"], row["executor_errors"]) for row in rows["tir"].values()
    }
    assert counts["top1"] == counts["program top1"]
    assert counts["top1"][0] >= 40 * 0.9 > counts["top1"][1]
    page = (root / "tir" / "pocket-gsm8k.html").read_text(encoding="utf-8")
    assert "```output" in page
