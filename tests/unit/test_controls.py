"""Records of controls: those of what is shipped, true to its scores, and on the page of a paper."""

import json
import shutil
from pathlib import Path

import pytest
from run_records import published, run_record

from core.models.builds import BUILDS
from core.records.answers import content_of, name_of
from core.records.passed import Passed
from core.records.places import Shelf, report_folder, results
from core.records.record import read_records
from core.run.check import check_papers, check_pocket
from core.run.pocket_controls import write_scan
from core.verdicts.controls import START, best_of, controls_in
from core.verdicts.regrade import Regrader

SHIPPED = Path(__file__).parents[2] / "results" / "pocket"
SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    """A folder of results with the pocket world's own records."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    (tmp_path / "results").mkdir()
    for path in SHIPPED.glob("*.json"):
        (tmp_path / "results" / "pocket").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / "results" / "pocket")


def problems():
    return check_pocket(Regrader(Passed(ask_again=True)))


def controls(name=START):
    """The record of a build's controls, as it is in its file."""
    found = next(one for one in controls_in(read_records("pocket")) if one["model"]["name"] == name)
    return {key: value for key, value in found.items() if key != "digest"}


def altered(name, change):
    """Change the controls of a build, under the name and seal that they then have."""
    record = controls(name)
    (results() / "pocket" / f"{name_of(record)}.json").unlink()
    change(record)
    record["content"] = content_of(record)
    (results() / "pocket" / f"{name_of(record)}.json").write_text(json.dumps(record))


def test_every_build_has_its_controls_which_are_true_to_its_scores():
    assert problems() == []


@pytest.mark.parametrize("name", BUILDS[START])
def test_controls_of_another_build_are_named_with_what_to_do(name):
    altered(name, lambda record: record["model"].update(digest="0" * 64))
    (line,) = problems()
    assert f"no controls of {name} as it is shipped" in line
    assert "make controls" in line


def suite_of(record):
    return record["suites"]["pocket-math"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: suite_of(record).update(start=20.0), "start is 20.0 %"),
        (lambda record: suite_of(record).update(best="a program"), "best is 'a program'"),
        (lambda record: suite_of(record).update(best="never tried"), "best is 'never tried'"),
        (lambda record: record["suites"].pop("pocket-math"), "suites are"),
        (lambda record: record.update(data="0"), "its problems are of 0"),
    ],
)
def test_controls_that_say_otherwise_than_the_scores_of_the_build_are_named(change, said):
    altered(START, change)
    (line,) = problems()
    assert said in line


def test_without_records_of_the_pocket_world_no_controls_are_missed():
    shutil.rmtree(results() / "pocket")
    assert problems() == []


def test_a_scan_of_the_same_outcome_is_kept_and_another_one_supersedes():
    before = controls()
    suites = json.loads(json.dumps(before["suites"]))
    assert write_scan(START, suites, before["data"])["supersedes"] is None
    suites["pocket-math"]["helped"] += 1
    assert write_scan(START, suites, before["data"])["supersedes"] == name_of(before)
    assert suite_of(controls())["helped"] == suites["pocket-math"]["helped"]
    assert problems() == []


def test_the_best_is_the_first_of_the_highest_and_never_none_at_all():
    assert best_of({"free": 90.0, "a": 10.0, "b": 40.0, "c": 40.0}) == "b"


def test_a_paper_s_page_shows_them_beside_what_its_runs_gained():
    altered(START, lambda record: suite_of(record).update(helped=44.9))  # from 43.4
    run_record(23)  # of 60, from 20
    published(SLUG)
    page = (report_folder(SLUG, "cpu", Shelf.PUBLISHED) / "report.md").read_text()
    (line,) = (line for line in page.splitlines() if "44.9 [" in line)
    assert "30 %" in line, "1.5 of 5 points"
    for part in (START, suite_of(controls())["best"], "43.4 [40.4, 46.5] n=1000", "5.0 [", "n=60"):
        assert part in line
    assert name_of(controls()) in page
    assert check_papers([SLUG])[SLUG] == []
    altered(START, lambda record: suite_of(record).update(helped=47.0))
    assert any("differs from its records" in line for line in check_papers([SLUG])[SLUG])
