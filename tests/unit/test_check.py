"""The gate: passes when all is in order, fails on a damaged number and on a drop in accuracy."""

import json
import re

import pytest
from run_records import published, run_record, written_again

from core.pages.families import family_files
from core.pages.index import index_files
from core.pages.render import render_outcome
from core.paper.registry import find_paper
from core.records.accepted import accept
from core.records.places import Shelf, record_files, report_folder, results, run_samples_file
from core.records.record import read_records, standard, write_record
from core.run.check import check_papers
from core.verdicts.consistency import start_disagreements
from core.verdicts.outcome import Outcome
from eval.errors import BadValue

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def problems():
    return check_papers([SLUG])[SLUG]


def accept_all():
    return accept(SLUG, standard(read_records(SLUG)))


@pytest.fixture
def accepted():
    """One run, accepted and rendered."""
    record = run_record(40)
    published(SLUG)
    accept_all()
    return record


def test_all_in_order_is_no_problem(accepted):
    assert problems() == []
    assert accepted["scores"][0]["value"] == pytest.approx(100 * 40 / 60)


def test_nothing_has_run_yet_is_no_problem():
    assert problems() == []


def test_a_changed_number_is_found(accepted):
    path = results() / SLUG / f"{accepted['digest']}.json"
    record = json.loads(path.read_text())
    record["scores"][0]["value"] += 1
    path.write_text(json.dumps(record))
    assert "altered" in problems()[0]


def test_a_number_that_its_samples_do_not_give_is_found(accepted):
    """The record is whole and its name right, but it never came from these samples."""
    first, *rest = accepted["scores"]
    written_again(accepted, scores=[{**first, "value": 70.0}, *rest])
    assert any("value is 70" in line and "samples give 66.6" in line for line in problems())


@pytest.mark.usefixtures("accepted")
def test_a_record_of_other_printed_numbers_than_the_module_s_is_found_and_superseded():
    (path,) = (p for p in record_files(SLUG) if "cells" in json.loads(p.read_text()))
    record = json.loads(path.read_text())
    record["cells"][0]["value"] += 1
    path.unlink()
    write_record(record)
    (line,) = problems()
    assert "reported:" in line
    assert "other numbers than the paper's module: run `repro publish`" in line
    published(SLUG)
    assert problems() == []


def test_damaged_and_missing_samples_are_named(accepted):
    path = run_samples_file(SLUG, accepted["digest"])
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    (line,) = problems()
    assert f"{path}: not a whole Parquet file" in line
    path.unlink()
    (line,) = problems()
    assert f"{path}: no such samples file" in line


@pytest.mark.usefixtures("accepted")
def test_an_edited_report_is_found_and_rendering_repairs_it():
    page = report_folder(SLUG, "cpu", Shelf.PUBLISHED) / "report.md"
    page.write_text(page.read_text().replace("66.7", "99.9"))
    assert problems() == [f"report: {page} differs from its records: run `repro publish`"]
    published(SLUG)
    assert problems() == []


@pytest.mark.usefixtures("accepted")
def test_a_figure_that_no_record_gives_is_found_and_rendering_removes_it_and_nothing_else():
    page = report_folder(SLUG, "cpu", Shelf.PUBLISHED)
    old, notes = page / "old.svg", page / "notes.txt"
    old.write_text("<svg/>")
    (line,) = problems()
    assert "no record gives cpu/old.svg" in line
    notes.write_text("mine")
    published(SLUG)
    assert (old.exists(), notes.exists()) == (False, True)
    notes.unlink()
    assert problems() == []


@pytest.mark.usefixtures("accepted")
def test_every_scale_has_a_page_that_leads_to_the_others_and_overwrites_none():
    small, large = (report_folder(SLUG, scale, Shelf.PUBLISHED) for scale in ("cpu", "gpu"))
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    run_record(30, scale="gpu")
    pages, _ = published(SLUG)
    assert pages == [small / "report.md", large / "report.md"]
    after = {path.name: path.read_bytes() for path in small.iterdir()}
    moved = [name for name in before if before[name] != after[name]]
    assert after.keys() == before.keys()
    assert sorted(moved) == ["report.html", "report.md"]  # they have a link more
    for page, other in ((small, large), (large, small)):
        text = (page / "report.md").read_text()
        assert set(re.findall(r"At (\w+) scale\]", text)) == {other.name}
        (way,) = re.findall(r"At \w+ scale\]\(([^)]+)\)", text)
        assert (page / way).resolve() == other / "report.md"
        assert f"({page.name} scale, greedy, top1)" in text
        assert f"({other.name} scale, greedy" not in text
    kept = [
        line
        for line in (small / "report.md").read_text().splitlines()
        if not line.startswith("- [At gpu")
    ]
    assert [line for line in kept if line] == [
        line for line in before["report.md"].decode().splitlines() if line
    ]
    assert "50.0" in (large / f"{SLUG}-gpu.md").read_text()
    family = family_files("grpo", [find_paper(SLUG)], "cpu", Shelf.PUBLISHED)["grpo.md"]
    for scale, name in (("cpu", SLUG), ("gpu", f"{SLUG} at gpu")):
        link = rf"\[{SLUG}\]\({SLUG}/{scale}/report.md\)"
        row = rf"\| {link} *\| {scale} *\| 7 untested +\| 1 held +\| - "
        assert re.search(row, index_files(Shelf.PUBLISHED)["index.md"])
        assert f"[{name}](../{SLUG}/{scale}/report.md)" in family
    assert problems() == []
    (large / "report.md").unlink()
    assert problems() == [f"report: {large / 'report.md'} is missing: run `repro publish`"]


@pytest.mark.parametrize("scale", ["cpu", "gpu", "paper"])
def test_a_run_ends_with_the_table_of_its_accuracies(scale):
    runs = [run_record(30, scale=scale)]
    claims = {"scale": scale, "overrides": {}, "verdicts": [], "digest": "0", "kind": "claims"}
    shown = render_outcome(find_paper(SLUG), Outcome(runs=runs, tunings=[], claims=claims))
    assert "| + grpo " in shown.table
    assert "50.0" in shown.table
    assert f"({scale} scale, greedy, top1)" in shown.path.read_text()


@pytest.mark.usefixtures("accepted")
def test_a_significant_drop_fails_and_can_be_accepted():
    run_record(15, created="2026-02-02")
    published(SLUG)
    found = problems()
    assert len(found) == 2
    assert "regression: cpu, all arms together: -41.7 points" in found[0]
    assert "regression: cpu, arm grpo: -41.7 points" in found[1]
    accept_all()
    assert problems() == []
    assert len(record_files(SLUG)) == 3  # both runs and the printed numbers


@pytest.mark.usefixtures("accepted")
def test_a_gain_and_a_drop_within_the_noise_pass():
    run_record(38, created="2026-02-02")
    published(SLUG)
    assert problems() == []
    run_record(55, created="2026-03-03")
    published(SLUG)
    assert problems() == []


@pytest.mark.parametrize(("limits", "number"), [((64, 64), 1), ((64, 16), 0)])
def test_a_starting_model_answers_alike_within_the_same_limit(limits, number):
    runs = [
        {
            "paper": SLUG,
            "digest": answers,
            "model": {"digest": "start"},
            "start_scores": [{"benchmark": "nano-length", "digest": answers}],
            "sampling": {},
            "curves": {},
            "config": {"eval_max_tokens": {"value": limit}},
        }
        for answers, limit in zip("ab", limits, strict=True)
    ]
    assert len([*start_disagreements(runs)]) == number


@pytest.mark.usefixtures("accepted")
def test_accepted_verdicts_that_are_gone_are_named():
    path = results() / SLUG / "accepted.json"
    lists = json.loads(path.read_text())
    path.write_text(json.dumps({**lists, "claims": {"cpu": "0123456789abcdef"}}))
    (line,) = problems()
    assert "the verdicts at cpu, 0123456789abcdef, are not there; restore it" in line


def test_a_file_is_no_place_for_records(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path / "file"))
    with pytest.raises(BadValue, match=r"REPRO_ROOT=.*: a file, expected the folder"):
        problems()
