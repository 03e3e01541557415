"""What a page shows beside its tables: samples, seeds, links to files, names of lines."""

import re
from html import unescape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists, text
from run_records import LIMIT, START_RIGHT, SUITES, run_record

from core.pages.every_seed import sections
from core.pages.examples import KINDS, firsts
from core.pages.render import render_all
from core.pages.report import report_files
from core.pages.runs import measured_in
from core.paper.registry import find_paper
from core.records.places import Shelf, report_folder, root, run_samples_file
from core.verdicts.controls import shown_records
from eval.samples.store import Sample
from eval.sets.benchmarks import find_benchmark
from eval.tables.filters import code_block, headings, visible
from eval.tables.plots import spread_places
from papers.cmath import PAPER as CMATH

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def page(form):
    shown = find_paper(SLUG), shown_records(SLUG), "cpu", report_folder(SLUG, "cpu", Shelf.HERE)
    files = report_files(*shown)
    assert files == report_files(*shown)
    return str(files[f"report.{form}"])


def answered(number, correct):
    rest = {"tokens": 1, "truncated": False, "extracted": None, "rule": "", "reason": ""}
    return Sample(
        benchmark="b", id=str(number), sample=0, output=f"text {number}", correct=correct, **rest
    )


@given(lists(lists(floats(0, 1), min_size=2, max_size=2), max_size=12))
def test_the_first_of_each_kind_is_shown(draws):
    """No verdict counts as wrong."""
    words = {0: None, 1: False, 2: True}
    verdicts = [(words[int(2.99 * a)], words[int(2.99 * b)]) for a, b in draws]
    pairs = [(answered(n, a), answered(n, b)) for n, (a, b) in enumerate(verdicts)]
    right = [(a is True, b is True) for a, b in verdicts]
    wanted = [[(False, True)], [(True, False)], [(True, True), (False, False)]]
    expected = {
        kind: str(next(n for n, one in enumerate(right) if one in some))
        for kind, some in zip(KINDS, wanted, strict=True)
        if any(one in some for one in right)
    }
    assert {kind: old.id for kind, (old, _) in firsts(pairs)} == expected


@pytest.mark.parametrize("form", ["md", "html"])
def test_samples_before_and_after_stand_side_by_side_with_their_question(form):
    record = run_record(range(1, START_RIGHT + 5), seed=0)
    run_record(50, seed=1)
    part = page(form).split("Samples before and after")[-1].split("Every seed")[0]
    assert "grpo, seed 0" in part
    for suite in SUITES.values():
        said = part.partition(f"{suite}<" if form == "html" else f"`{suite}`")[2]
        ids = re.findall(rf"{suite}-test-(\d+)", said.replace("<wbr>", ""))[:3]
        # wrong became right after those that the start solves; the first became wrong
        assert ids == [str(START_RIGHT), "0", "1"]
    assert part.count("I do not know.") == 2 * len(SUITES)
    assert part.count("The answer is \\boxed{") == 4 * len(SUITES)
    for row in record["start_scores"]:
        assert part.count(f"../../../results/samples/{row['digest']}.parquet") == 3
    assert part.count(f"../../../results/{SLUG}/{record['digest']}.parquet") == 3 * len(SUITES)


def test_a_question_is_the_one_that_was_asked_on_the_draw_of_the_seed():
    run_record(30, seed=4)
    run_record(30, seed=7)
    found = re.findall(r"<blockquote>(.*?)</blockquote>", page("html"), re.DOTALL)
    (asked, *_) = find_benchmark("pocket-gsm8k", 4).load(limit=LIMIT)[START_RIGHT:]
    assert unescape(found[0]) == asked.question


def test_kinds_of_samples_that_there_are_none_of_are_named():
    run_record(START_RIGHT, seed=0)
    text = page("md")
    assert text.count("Wrong before, right after: none.") == len(SUITES)
    assert text.count("Right before, wrong after: none.") == len(SUITES)


def test_where_no_texts_are_stored_the_page_says_so():
    run_record(30, seed=0, sealed=True)
    assert page("md").count("The texts of grpo are not stored") == len(SUITES)
    record = run_record(31, seed=0, created="2027-01-01")
    run_samples_file(SLUG, record["digest"]).unlink()
    assert page("md").count("Its samples are not stored here.") == len(SUITES)


def test_every_score_of_every_seed_is_on_the_page_with_its_files():
    records = [run_record(right, seed=seed) for seed, right in enumerate((30, 40, 50))]
    render_all((SLUG,))
    folder = report_folder(SLUG, "cpu", Shelf.HERE)
    html = (folder / "report.html").read_text()
    part = html.partition('<h2 id="seeds">')[2].partition("<h2")[0]
    for record in records:
        assert f"{record['digest']}.json" in part
        after = f"../../../results/{SLUG}/{record['digest']}"
        starts = [(f"../../../results/samples/{r['digest']}", r) for r in record["start_scores"]]
        for path, row in (*starts, *((after, row) for row in record["scores"])):
            link = f'<a href="{path}.parquet">'
            assert f"{link}{row['value']:.1f}</a>" in part
            assert f"[{row['low']:.1f}, {row['high']:.1f}]" in part
    links = re.findall(r'href="(\.\.[^"]+)"', html)
    assert len(links) > 12
    assert all((folder / link).is_file() for link in links)
    plain = (folder / "report.md").read_text()
    seeds = plain.partition("## Every seed")[2].partition("##")[0]
    for record, seed in zip(records, range(3), strict=True):
        (line,) = re.findall(rf"\| \+ grpo +\| {seed} .*", seeds)
        assert [float(cell) for cell in re.findall(r"([\d.]+)\\?\*? \[", line)] == [
            round(row["value"], 1) for row in record["scores"]
        ]
    assert all((folder / link).is_file() for link in re.findall(r"\]\((\.\.[^)]+)\)", plain))


def test_scores_without_a_training_are_in_one_section():
    runs = [run_record(right, seed=seed) for seed, right in enumerate((30, 40))]
    folder = report_folder(SLUG, "cpu", Shelf.HERE)
    titles = [section.title for section in sections(CMATH, runs, measured_in(runs), "cot", folder)]
    assert {*titles} == {"Ours"}
    trained = sections(find_paper(SLUG), runs, measured_in(runs), "cot", folder)
    assert [section.title for section in trained] == ["Before RL", "After RL"]


def test_links_of_a_page_beside_the_runs_lead_to_the_same_files():
    run_record(30, seed=0)
    run_record(30, seed=0, scale="gpu")
    folder = root() / "runs" / "reports" / "0"
    folder.mkdir(parents=True)
    files = report_files(find_paper(SLUG), shown_records(SLUG), "cpu", folder, alone=True)
    plain = str(files["report.md"])
    links = re.findall(r"\]\((\.\.[^)]+)\)", plain)
    assert len(links) > 6
    assert all((folder / link).is_file() for link in links)
    assert "At gpu scale" not in plain  # that is of the runs at the paper's own settings


def test_ours_stand_above_what_is_printed():
    run_record(30, seed=0)
    titles = [title for _, title in headings(page("html"))]
    assert titles.index("Benchmarks") < titles.index("Every seed") < titles.index("Printed numbers")
    part = page("html").partition('<h2 id="benchmarks">')[2].partition("<h2")[0]
    assert "(paper scale" not in part


@given(text())
def test_a_text_of_a_model_cannot_leave_its_block(words):
    block = code_block(words)
    fence = re.match("`+", block)[0]
    first, *inside, last = block.split("\n")
    assert (first, last) == (f"{fence}text", fence)
    assert not any(fence in line for line in inside)
    shown = visible(words)
    assert all(c.isprintable() or c in "\n\t" or c.isspace() for c in shown)
    shown.encode()


def test_what_no_reader_sees_is_written_out():
    assert visible("a\u200bb\x1b[31m\ud800 \u4f60\u3000.\n\t") == (
        "a\\u200bb\\x1b[31m\\ud800 \u4f60\u3000.\n\t"
    )


@given(
    ends=lists(floats(0, 1), min_size=1, max_size=20).map(sorted),
    gap=floats(0.001, 0.2),
)
def test_names_are_a_gap_apart_and_move_no_more_than_they_must(ends, gap):
    places = spread_places(ends, gap)
    assert places[-1] <= 1
    assert all(after - before >= gap - 2e-4 for before, after in pairwise(places))
    if gap * (len(ends) - 1) <= 1:
        assert places[0] >= -2e-4
    if all(after - before >= gap for before, after in pairwise(ends)):
        assert places == pytest.approx(ends, abs=1e-4)
