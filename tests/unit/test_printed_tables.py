"""Printed tables of several shapes: one benchmark at several K, blocks by model, several units."""

import csv
import re
from dataclasses import replace
from io import StringIO

import pytest
from table_records import run

from core.pages.printed import passages, printed_table
from core.pages.runs import runs_table
from core.pages.tables import tables_named, tables_of
from core.paper import Column, Layout, Paper, marked, printed
from eval.errors import BadValue, UnknownName
from eval.tables import FORMATS, render, render_all
from eval.tables.filters import format_fixed

MATHS = ("aime24", "AMC", "math500", "Minerva", "OlympiadBench", "Average")


def a_paper(slug, reported, **fields):
    settings = {"family": "grpo", "config": (), "model": "m", "data": "d", **fields}
    return Paper(slug=slug, title=slug, arxiv="0", reported=tuple(reported), **settings)


DR_GRPO = a_paper(
    "dr-grpo",
    printed(
        "the table of benchmarks",
        MATHS,
        "greedy",
        {
            ("Oat-Zero", "7B"): [43.3, 62.7, 80.0, 30.1, 41.0, 51.4],
            ("PRIME-Zero", "7B"): [16.7, 62.7, 83.8, 36.0, 40.9, 48.0],
            ("Qwen2.5-Math", "7B"): [marked("as printed", 0.2), 45.8, 69.0, 21.3, 34.7, 38.2],
            ("Oat-Zero", "1.5B"): [None, None, None, None, None, 42.1],
        },
    ),
)
FIVE = ("math500", "Minerva", "OlympiadBench", "aime24", "amc23")
DFT = a_paper(
    "dft",
    (
        *printed(
            "table 1",
            FIVE,
            "avg@16",
            {"base": [1.63, 1.36, 1.01, 0.41, 1.56], "SFT": [8.65, 2.38, 2.06, 0.0, 3.13]},
            block="LLaMA-3.2-3B",
        ),
        *printed(
            "table 1",
            FIVE,
            "avg@16",
            {"base": [40.12, 14.39, 17.12, 6.68, 27.96], "DFT": [68.2, 30.16, 33.83, 8.56, 45.0]},
            block="Qwen2.5-Math-7B",
        ),
        *printed(
            "the table of code",
            ["HumanEval"],
            "pass@1",
            {("Qwen2.5-Coder base", "7B"): [62.2], ("Qwen2.5-Coder DFT", "7B"): [67.7]},
        ),
    ),
)
PASS_AT_K = a_paper(
    "pass-at-k",
    printed(
        "table 1",
        [Column(benchmark="HumanEval", metric=f"pass@{k}") for k in (1, 10, 100)],
        "pass@1",
        {
            ("Codex", "12B"): [28.81, 46.81, 72.31],
            ("GPT-J", "6B"): [11.62, 15.74, 27.74],
            ("GPT-Neo", "2.7B"): [6.41, 11.27, 21.37],
        },
    ),
)
UNITS = a_paper(
    "units",
    printed(
        "table 2",
        [
            Column(benchmark="aime24", group="Accuracy", title="AIME", metric="avg@32"),
            Column(benchmark="length", group="Cost", title="Length", unit="tokens", metric=""),
            Column(benchmark="time", group="Cost", title="Time", unit="hours", metric=""),
            Column(benchmark="speed-up", unit="x", metric=""),
            Column(benchmark="KL", unit="", metric=""),
        ],
        "avg@32",
        {"GRPO": [50.0, 12000, 7.5, 1, 0.0004], "Dr. GRPO": [51.5, 3000, 6.25, 2.5, None]},
    ),
)
PAPERS = [DR_GRPO, DFT, PASS_AT_K, UNITS]
EVERY = [(paper, passage) for paper in PAPERS for passage in passages(paper)]


def read_csv(text):
    return list(csv.DictReader(StringIO(text)))


@pytest.mark.parametrize(("paper", "passage"), EVERY)
def test_every_number_stands_once_under_its_heading_in_its_own_decimals(paper, passage):
    numbers = [number for number in paper.reported if number.passage == passage]
    table = printed_table(paper, passage)
    rows = read_csv(render(table, "csv"))
    assert sorted(float(row["value"]) for row in rows) == sorted(n.value for n in numbers)
    assert {row["metric"] for row in rows} == {n.metric for n in numbers}
    assert {row.get("unit") or "%" for row in rows} <= {n.unit or "%" for n in numbers}
    cells = [
        format_fixed(cell.value, column.places)
        for _, _, row in table.rows()
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell
    ]
    assert sorted(map(float, cells)) == sorted(n.value for n in numbers)  # no digit is lost
    for fmt in ("md", "html", "latex"):
        text = render(table, fmt)
        assert all(cell in text for cell in cells), fmt


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_no_row_and_no_column_is_empty(paper, fmt):
    for table in tables_of(paper):
        grid = [row.cells for _, _, row in table.rows()]
        assert all(any(cells) for cells in grid)
        assert all(any(cells) for cells in zip(*grid, strict=True))
        assert render(table, fmt)


def test_several_metrics_of_one_benchmark_stand_below_its_name():
    table = printed_table(PASS_AT_K, "table 1")
    assert [(c.group, c.title) for c in table.columns] == [
        ("HumanEval", f"pass@{k}") for k in (1, 10, 100)
    ]
    assert "| HumanEval: pass@1 | HumanEval: pass@10 |" in re.sub(" +", " ", render(table, "md"))
    latex = render(table, "latex")
    assert "\\multicolumn{3}{c}{HumanEval} \\\\\n\\cmidrule(lr){3-5}\n" in latex
    assert 'colspan="3">HumanEval</th>' in render(table, "html")
    assert [row["group"] for row in read_csv(render(table, "csv"))] == ["HumanEval"] * 9
    assert table.caption == "pass-at-k, table 1: in % (paper scale, as reported)"


def test_units_stand_in_the_header_and_numbers_keep_the_decimals_they_are_printed_with():
    text = re.sub(" +", " ", render(printed_table(UNITS, "table 2"), "md"))
    head = "| Model | Accuracy: AIME (%) | Cost: Length (tokens) | Cost: Time (hours) "
    assert head + "| speed-up (x) | KL |" in text
    assert "| GRPO | 50.0 | 12000 | 7.50 | 1.0 | 0.0004 |" in text
    assert "| Dr. GRPO | 51.5 | 3000 | 6.25 | 2.5 | - |" in text
    latex = render(printed_table(UNITS, "table 2"), "latex")
    assert " & \\multicolumn{1}{c}{Accuracy} & \\multicolumn{2}{c}{Cost} & " in latex
    assert "\\cmidrule(lr){2-2}\n\\cmidrule(lr){3-4}\n" in latex


def test_blocks_share_their_columns_and_a_mark_says_what_it_means():
    table = printed_table(DFT, "table 1")
    assert [block.title for block in table.blocks] == ["LLaMA-3.2-3B", "Qwen2.5-Math-7B"]
    assert table.caption == "dft, table 1: avg@16 in % (paper scale, as reported)"
    text = render(printed_table(DR_GRPO, "the table of benchmarks"), "md")
    assert "0.2*" in text
    assert r"- \* as printed: not the metric of the rest of its column; not ranked." in text
    assert "**43.3**" not in text  # nobody said that open models are ranked here


def test_more_marks_than_signs_are_told_apart_in_latex():
    cells = [marked(f"maj@{k}", 50.0 + k) for k in range(6)]
    paper = a_paper("p", printed("t", [f"b{k}" for k in range(6)], "top1", {"a": cells}))
    signs = re.findall(r"\$\^\{(\S+?)\}\$maj", render(printed_table(paper, "t"), "latex"))
    assert len(set(signs)) == 6


@pytest.mark.parametrize(("change", "word"), [({"block": "b"}, "block"), ({"source": "s"}, "sour")])
def test_what_a_layout_does_not_name_is_refused(change, word):
    layout = Layout(of="t", name="n", caption="c", blocks={"x": "X"}, sources={"y": "Y"})
    numbers = printed(
        "t", ["gsm8k"], "top1", {"a": [1.0]}, **{"block": "x", "source": "y"} | change
    )
    with pytest.raises(BadValue, match=f"a has the {word}"):
        printed_table(a_paper("p", numbers, layouts=(layout,)), "t")


def a_run(names, scale="cpu", slug="dr-grpo", **changes):
    return run("grpo", 0, 60.0, scale, names) | {"paper": slug} | changes


def test_benchmarks_with_one_twin_share_a_column():
    twice = a_run(("pocket-math", "pocket-math"))
    table = runs_table(DR_GRPO, [twice], "cpu")
    assert [column.title for column in table.columns] == ["pocket MATH"]
    assert [[c.value for c in row.cells] for _, _, row in table.rows()] == [[40.0], [60.0]]
    assert (table.name, table.columns[0].metric) == ("dr-grpo-cpu", "top1")
    twice["scores"][1] = twice["scores"][1] | {"value": 61.0}
    with pytest.raises(BadValue, match="2 different scores in scores of one run"):
        runs_table(DR_GRPO, [twice], "cpu")


def test_each_model_that_an_arm_began_with_has_its_own_row():
    base = run("base", 0, 50.0, names=("pocket-math",), start=30.0)
    runs = [a_run(("pocket-math",)), base | {"paper": "dr-grpo", "start_model": "pocket-base"}]
    table = runs_table(DR_GRPO, runs, "cpu")
    shown = [(row.labels[0], *(c.value for c in row.cells)) for _, _, row in table.rows()]
    assert shown == [
        ("pocket-instruct", 40.0),
        ("pocket-base", 30.0),
        ("+ grpo", 60.0),
        ("+ base", 50.0),
    ]


def test_what_was_asked_in_several_ways_has_a_block_for_each():
    both = a_run(("pocket-math", "pocket-gsm8k"))
    both["scores"] += [
        row | {"mode": "tir", "value": 70.0, "low": 66.0, "high": 74.0}
        for row in both["scores"][:1]
    ]
    table = runs_table(DR_GRPO, [both], "cpu")
    assert [block.title.split("-")[0] for block in table.blocks] == ["Chain", "Tool"]
    (tool,) = table.blocks[1].sections
    assert [cell and cell.value for cell in tool.rows[0].cells] == [70.0, None]


def test_ours_at_paper_scale_stand_below_the_printed_numbers_on_the_same_benchmark():
    numbers = printed("t", ["math500", "Minerva"], "top1", {"Theirs": [50.0, 20.0]})
    paper = a_paper("dr-grpo", numbers)
    table = printed_table(paper, "t", [a_run(("math500",), "paper")])
    cells = {row.labels[0]: [c and c.value for c in row.cells] for _, _, row in table.rows()}
    assert cells == {
        "Theirs": [50.0, 20.0],
        "pocket-instruct": [40.0, None],
        "+ grpo": [60.0, None],
    }
    assert "reported and ours" in table.caption
    assert printed_table(paper, "t", [a_run(("gsm8k",), "paper")]).caption.endswith("as reported)")


@pytest.mark.parametrize(
    ("family", "after"),
    [("grpo", "Ours: after RL"), ("sft", "Ours: after fine-tuning"), ("evaluation", "Ours")],
)
def test_what_came_before_a_score_is_called_as_the_family_calls_it(family, after):
    paper = replace(DFT, family=family)
    text = render(runs_table(paper, [a_run(("pocket-math",), slug="dft")], "cpu"), "md")
    assert f"*{after}*" in text
    assert ("before and after" in text) == (family != "evaluation")


def test_tables_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    tables = tables_named("deepseekmath-grpo")
    assert [table.name for table in tables] == ["deepseekmath", "deepseekmath-grpo-abstract"]
    assert tables_named("deepseekmath") == tables[:1]
    html = render_all(tables, "html")
    assert html.count("<table") == 2 * html.count("<html") == 2
    with pytest.raises(BadValue, match="no runs of standard settings"):
        tables_named("deepseekmath-pocket")
    with pytest.raises(UnknownName, match="did you mean deepseekmath"):
        tables_named("deepseekmth")
