"""The rendered table, byte for byte; `make golden` (GOLDEN=1) rewrites, the diff is reviewed."""

import json
import os
from pathlib import Path

import pytest

from core.pages.printed import printed_table
from eval.tables import render
from papers.deepseekmath_grpo import PAPER

HERE = Path(__file__).parent
SUFFIXES = {"md": "md", "latex": "tex", "html": "html", "csv": "csv"}
RECORD = json.loads((HERE / "deepseekmath_reported.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("fmt", SUFFIXES)
def test_the_table_is_the_golden_one(fmt):
    path = HERE / f"deepseekmath.{SUFFIXES[fmt]}"
    text = render(printed_table(PAPER, "table 5"), fmt)
    if os.environ.get("GOLDEN") == "1":
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs: `make golden` rewrites"


def test_the_table_is_the_whole_of_table_5():
    table = printed_table(PAPER, "table 5")
    rows = [(block.title, section.title, row) for block, section, row in table.rows()]
    assert len(rows) == 26
    assert sum(cell is not None for _, _, row in rows for cell in row.cells) == 73
    counts = [len(s.rows) for b in table.blocks for s in b.sections]
    assert counts == [8, 11, 1, 6]
    bold = [
        (row.labels[0], [cell.value for cell in row.cells if cell and cell.bold])
        for _, _, row in rows
        if any(cell and cell.bold for cell in row.cells)
    ]
    assert bold == [
        ("DeepSeekMath-RL", [88.2, 51.7, 79.6, 88.8]),
        ("DeepSeek-LLM-Chat", [86.7]),
        ("DeepSeekMath-RL", [86.7, 58.8, 78.4, 87.6]),
    ]


def test_the_paper_module_states_the_same_numbers():
    fields = ("system", "size", "block", "source", "benchmark", "metric", "value")
    stated = [
        tuple(getattr(number, field) for field in fields)
        for number in PAPER.reported
        if number.block != "text"
    ]
    assert stated == [tuple(cell[field] for field in fields) for cell in RECORD["cells"]]
