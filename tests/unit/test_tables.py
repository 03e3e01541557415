import csv
import html
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_records import PRINTED, benchmark_table, one_cell, pocket_table, printed, run

from eval.errors import BadValue, UnknownName
from eval.sets.benchmarks import find_benchmark
from eval.tables import FORMATS, Block, Cell, Column, Row, Section, render
from eval.tables.filters import format_fixed, md, tex
from eval.tables.table import Versus

PLACES = [
    (block, source, name)
    for block in ("cot", "tool")
    for source in ("closed", "open")
    for name in PRINTED
]


@st.composite
def reported_cells(draw):
    """Systems with some cells missing and some marked; every value prints differently."""
    values = draw(st.lists(st.integers(1, 999), min_size=1, max_size=24, unique=True))
    places = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from(PLACES)),
            min_size=len(values),
            max_size=len(values),
            unique=True,
        )
    )
    return [
        printed(
            f"system {system}",
            name,
            tenths / 10,
            block,
            source,
            metric=draw(st.sampled_from(["top1", "top1", "maj@32"])),
        )
        for tenths, (system, (block, source, name)) in zip(values, places, strict=True)
    ]


def numbers_md(text):
    fields = [
        f.strip()
        for line in text.splitlines()
        if line.startswith("|")
        for f in line.strip("|").split("|")
    ]
    return [m[1] for f in fields if (m := re.fullmatch(r"\**(\d+\.\d)\**", f))]


def numbers_latex(text):
    body = text.split("\\toprule")[1].split("\\bottomrule")[0]
    fields = [f for line in body.splitlines() for f in line.removesuffix(" \\\\").split(" & ")]
    inside = [re.sub(r"\\rlap.*|\\text\w+(\{gray\})?|[{}]", "", f) for f in fields]
    return [f for f in inside if re.fullmatch(r"\d+\.\d", f)]


def numbers_html(text):
    return re.findall(
        r"<td[^>]*>(?:<strong>)?(\d+\.\d)(?:</strong>)?(?:<sup>\*+</sup>)?</td>", text
    )


def numbers_csv(text):
    return [format_fixed(value) for value in pd.read_csv(StringIO(text))["value"]]


READERS = {"md": numbers_md, "latex": numbers_latex, "html": numbers_html, "csv": numbers_csv}


@pytest.mark.parametrize("fmt", FORMATS)
@settings(max_examples=40, deadline=None)
@given(cells=reported_cells())
def test_every_reported_cell_appears_exactly_once(fmt, cells):
    found = READERS[fmt](render(benchmark_table(cells), fmt))
    assert sorted(found) == sorted(format_fixed(cell.value) for cell in cells)


@settings(max_examples=60, deadline=None)
@given(cells=reported_cells())
def test_bold_is_the_best_unmarked_open_cell_of_its_block(cells):
    table = benchmark_table(cells)
    names = {find_benchmark(name).title: name for name in PRINTED}
    bold = {
        (block.title.split("-")[0], names[table.columns[column].title], cell.value)
        for block, _, row in table.rows()
        for column, cell in enumerate(row.cells)
        if cell and cell.bold
    }
    expected = set()
    for block, title in (("cot", "Chain"), ("tool", "Tool")):
        for name in PRINTED:
            rankable = [
                c.value
                for c in cells
                if (c.block, c.benchmark, c.source, c.metric) == (block, name, "open", "top1")
            ]
            if rankable:
                expected.add((title, name, max(rankable)))
    assert bold == expected


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(0, 100), min_size=1, max_size=6),
    label=st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1),
)
def test_csv_reads_back_as_the_same_floats_and_texts(values, label):
    cells = tuple(Cell(v, v, v, 7) for v in values)
    columns = tuple(Column(f"c{i}") for i in range(len(values)))
    table = one_cell(
        None, columns=columns, blocks=(Block(label, (Section("s", (Row((label,), cells),)),)),)
    )
    frame = pd.read_csv(StringIO(render(table, "csv")), keep_default_na=False, dtype=str)
    for end in ("value", "low", "high"):
        assert [float(number) for number in frame[end]] == values
    assert list(frame["benchmark"]) == [column.title for column in columns]
    assert {text.removeprefix("'") for text in frame["model"]} == {label.removeprefix("'")}
    assert set(frame["model"]) == set(frame["block"])
    assert set(frame["n"]) == {"7"}


STARTS = ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\uff1d", "\uff0b", "\uff0d", "\uff20"]


@settings(max_examples=60, deadline=None)
@given(start=st.sampled_from(STARTS), rest=st.text(st.characters(exclude_categories=["Cs"])))
def test_csv_has_no_cell_that_a_spreadsheet_runs(start, rest):
    """Every text of a table, wherever it stands, whatever it begins with."""
    text = f"{start}1{rest}=1"
    versus = Versus(-1.5, -2.0, -1.0, 0.04, 7, text)
    cell = Cell(-3.5, -4.0, 3.0, 7, mark=text, source=text, versus=versus)
    section = Section(text, (Row((text,), (cell,)),))
    table = one_cell(
        None,
        scale=text,
        baseline=text,
        marks={text: ""},
        heads=(text,),
        columns=(Column(text, group=text, unit=text),),
        blocks=(Block(text, (section,)),),
    )
    head, row = csv.reader(StringIO(render(table, "csv"), newline=""))
    assert row.count(f"'{text}") == 11
    assert head[2] == f"'{text}".lower()
    others = [value for value in row if value != f"'{text}"]
    assert {"-3.5", "-4.0", "-1.5"} <= set(others)
    assert not [value for value in others if value.startswith(tuple("=+@\t\r\n"))]


@pytest.mark.parametrize("number", ["-3.5", "+3", "-1e-6", "-2.5E+3"])
def test_a_signed_number_stays_a_number_in_csv(number):
    row = Row((number,), (Cell(1.0, reported=True),))
    table = one_cell(None, blocks=(Block("", (Section("", (row,)),)),))
    assert f'"{number}"' in render(table, "csv")


@pytest.mark.parametrize("fmt", ["html", "latex", "md"])
def test_special_characters_of_every_text_are_escaped(fmt):
    nasty = "<b>&{x}_$50%|#"
    cell = Cell(1.0, reported=True, mark="maj@32", source=nasty)
    row = Row((nasty,), (cell,))
    table = one_cell(
        None,
        caption=nasty,
        columns=(Column(nasty),),
        notes=(nasty,),
        marks={"maj@32": nasty},
        blocks=(Block(nasty, (Section(nasty, (row,)),)),),
    )
    text = render(table, fmt)
    escape = {"html": html.escape, "latex": tex, "md": md}[fmt]
    assert nasty not in text
    assert text.count(escape(nasty)) >= 7


def test_marked_cells_are_marked_and_explained():
    cells = [printed("Gemini", "gsm8k", 94.4, source="closed", metric="maj@32")]
    table = benchmark_table(cells)
    assert "| 94.4* |" in re.sub(" +", " ", render(table, "md"))
    assert r"- \* maj@32: majority vote over 32 samples" in render(table, "md")
    assert r"\textcolor{gray}{94.4}\rlap{$^{\dagger}$}" in render(table, "latex")
    assert r"$^{\dagger}$maj@32: majority vote" in render(table, "latex")
    assert '<td class="marked" title="table 5">94.4<sup>*</sup></td>' in render(table, "html")
    assert '"maj@32",94.4' in render(table, "csv")


def test_missing_cells_are_dashes_and_absent_from_csv():
    table = benchmark_table([printed("a", "math", 50.0), printed("b", "cmath", 51.0)])
    assert re.search(r"\| a +\| 7B +\| +\*\*50.0\*\* \| +- \|", render(table, "md"))
    assert "a & 7B & \\textbf{50.0} & -- \\\\" in render(table, "latex")
    assert render(table, "html").count('<td class="missing">-</td>') == 2
    assert len(render(table, "csv").splitlines()) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"n": None},
        {"low": None},
        {"high": None},
        {"low": 51.0},
        {"high": 49.0},
        {"n": 0},
        {"value": float("nan")},
        {"value": float("inf")},
        {"seeds": 0},
    ],
)
def test_a_number_of_ours_without_n_or_interval_is_refused(fields):
    with pytest.raises(BadValue):
        Cell(**({"value": 50.0, "low": 45.0, "high": 55.0, "n": 500} | fields))


def test_a_reported_number_needs_no_interval():
    assert not Cell(88.2, reported=True).has_interval


def test_unknown_format_names_the_known_ones():
    with pytest.raises(UnknownName, match="did you mean latex"):
        render(one_cell(None), "latx")


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(BadValue, match="1 labels and 1 cells for 2 and 1 columns"):
        one_cell(None, heads=("Model", "Size"))


def test_a_mark_without_explanation_is_refused():
    with pytest.raises(BadValue, match="maj@8"):
        one_cell(Cell(1.0, reported=True, mark="maj@8"))


@pytest.mark.parametrize("text", ["plain", r'a_b & 50% {x} #1 $y$ ~^\ <|> "q"'])
def test_latex_compiles_and_fits_the_page(tmp_path, text):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: the LaTeX tables were NOT compiled")
    ours = [run("grpo", seed, 90.0 + seed, "paper", PRINTED) for seed in range(2)]
    cells = [printed(text, "math", 50.0), printed("b", "gsm8k", 9.0, metric="maj@32")]
    joined = benchmark_table(cells, *ours)
    pocket = pocket_table([run("online_rft", seed, 50.0 + seed) for seed in range(3)])
    body = render(joined, "latex") + render(replace(pocket, notes=(text,)), "latex")
    document = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs,xcolor}"
        f"\\begin{{document}}{body}\\end{{document}}"
    )
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert text != "plain" or "Overfull" not in done.stdout
