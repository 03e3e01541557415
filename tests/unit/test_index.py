"""The index of `repro list` and the list of passed checks save work and are never believed."""

import json
import shutil
from dataclasses import replace

import pytest
from run_records import published, run_record, written_again
from typer.testing import CliRunner

from core.cli.main import app
from core.paper.registry import find_entry
from core.records.found import list_runs
from core.records.index import kinds_and_scales
from core.records.passed import Passed, code_digest, read_keys
from core.records.places import (
    Shelf,
    own_results,
    record_file,
    record_files,
    report_folder,
    root,
    start_samples_file,
)
from core.run.check import check_papers, checked_module
from eval.errors import DamagedFile

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def counted():
    with kinds_and_scales() as index:
        return sorted(scale for kind, scale in index.entries(SLUG) if kind == "run")


def problems(**asked):
    return check_papers([SLUG], **asked)[SLUG]


def test_the_index_follows_the_records_that_come_change_and_go():
    assert counted() == []
    run_record(40)
    assert counted() == counted() == ["cpu"]
    run_record(30, scale="gpu")
    assert counted() == ["cpu", "gpu"]
    (changed,) = (p for p in record_files(SLUG) if json.loads(p.read_text())["scale"] == "gpu")
    changed.write_text(changed.read_text().replace('"scale": "gpu"', '"scale": "paper"'))
    assert counted() == ["cpu", "paper"]
    changed.unlink()
    assert counted() == ["cpu"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 3}', '[["a", "b"]]', "null", "\udcff"])
def test_a_damaged_index_is_made_again(content):
    run_record(40)
    assert counted() == ["cpu"]
    path = root() / "runs" / "index.json"
    path.write_text(content, errors="surrogateescape")
    assert counted() == ["cpu"]
    assert list(json.loads(path.read_text())) == [
        p.relative_to(root()).as_posix() for p in record_files(SLUG)
    ]


def test_a_record_that_is_no_json_is_named_and_the_others_are_kept():
    run_record(40)
    (own_results() / SLUG / "ffff.json").write_text("no")
    with pytest.raises(DamagedFile, match=r"ffff.json: not a JSON record"):
        counted()
    assert len(json.loads((root() / "runs" / "index.json").read_text())) == 1


def test_listed_runs_are_those_that_stand_and_an_altered_one_is_named():
    old = run_record(40)
    new, other = run_record(41, created="2027-01-01"), run_record(30, arm="rft", seed=1)
    expected = [other["digest"], new["digest"]]
    for _ in range(2):
        assert [run["digest"] for run in list_runs(SLUG)] == expected
    assert new["supersedes"] == old["digest"]
    assert [run["digest"] for run in list_runs(arm="rft")] == [other["digest"]]
    assert list_runs(seed=0, scale="gpu") == []
    path = record_file(SLUG, new["digest"])
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 2'))
    with pytest.raises(DamagedFile, match=new["digest"]):
        list_runs()


def test_nothing_needs_to_be_written():
    """As where all is mounted to be read only: a file in the place of the folder refuses too."""
    run_record(40)
    published(SLUG)
    shutil.rmtree(root() / "runs")
    (root() / "runs").write_text("")
    assert counted() == counted() == ["cpu"]
    assert problems() == problems() == []


@pytest.fixture
def forged():
    """A record that is whole and rightly named, whose samples give another value."""
    honest = run_record(40)
    first, *rest = honest["scores"]
    return written_again(honest, scores=[{**first, "value": 70.0}, *rest])


@pytest.mark.usefixtures("forged")
def test_what_did_not_pass_is_asked_again():
    found = problems()
    assert any("value is 70" in line for line in found)
    assert problems() == problems(ask_again=True) == found


def test_what_passed_is_not_graded_again_unless_asked_for():
    run_record(40)
    published(SLUG)
    assert problems() == []
    path = root() / "runs" / "passed.json"
    passed = json.loads(path.read_text())
    # The module, four files of samples, the run's scores, what follows from it, the report, the
    # regressions.
    assert len(passed) == 9
    page = report_folder(SLUG, "cpu", Shelf.PUBLISHED) / "report.md"
    page.write_text(page.read_text().replace("66.7", "99.9"))
    assert [line[:7] for line in problems()] == ["report:"]  # other files are another check
    published(SLUG)
    assert problems() == problems(ask_again=True) == []
    assert set(json.loads(path.read_text())) == set(passed)


def test_samples_are_held_against_their_digest_though_their_record_passed():
    record = run_record(40)
    published(SLUG)
    assert problems() == []
    digest = record["start_scores"][0]["digest"]
    other = record["start_scores"][1]["digest"]
    shutil.copy(start_samples_file(other), start_samples_file(digest))
    (line,) = problems()
    assert f"the digest {other}, expected {digest}" in line


def test_a_check_is_the_same_one_while_all_that_it_depends_on_is():
    passed = Passed()
    assert passed.problems({"record": "a", "code": 1}, ["wrong"]) == ["wrong"]
    assert passed.problems({"record": "a", "code": 1}, []) == []
    passed.save(whole=False)
    assert Passed().problems({"record": "a", "code": 1}, ["not asked"]) == []
    assert Passed().problems({"record": "a", "code": 2}, ["asked"]) == ["asked"]
    assert Passed(ask_again=True).problems({"record": "a", "code": 1}, ["asked"]) == ["asked"]
    nothing = Passed()
    nothing.problems({"record": "b"}, [])
    nothing.save(whole=True)  # of all papers: what was not met belongs to no record any more
    assert Passed().problems({"record": "a", "code": 1}, ["asked"]) == ["asked"]


def test_a_module_is_checked_again_if_its_paper_changed_and_each_time_if_it_is_not_ours(
    monkeypatch,
):
    entry, passed = find_entry(SLUG), Passed()
    paper = entry.load()
    assert checked_module(entry, paper, passed) == []
    passed.save(whole=False)
    (problem,) = checked_module(entry, replace(paper, title="TODO"), Passed())
    assert "TODO" in problem
    passed.path.unlink()
    monkeypatch.setattr("core.run.check.OURS", "others")
    foreign = Passed()
    assert checked_module(entry, paper, foreign) == []
    foreign.save(whole=False)
    assert not foreign.path.exists()


def test_papers_checked_in_several_processes_have_the_same_problems_and_saved_checks(monkeypatch):
    record = run_record(40)
    published(SLUG)
    found = []
    for cores in (1, 2, 2):
        if len(found) == 2:  # a file that no longer is what was written
            start_samples_file(record["start_scores"][0]["digest"]).write_bytes(b"")
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: {*range(cores)})
        Passed().path.unlink(missing_ok=True)
        found.append((check_papers([SLUG, "mgsm"]), read_keys(Passed().path)))
    assert found[0] == found[1]
    assert found[0][1] > found[2][1]
    assert found[0][0] == {SLUG: [], "mgsm": []} != found[2][0]


def test_the_code_is_another_when_a_source_file_is(tmp_path, monkeypatch):
    package = tmp_path / "judges"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = set()
    for text in ("a = 1", "a = 2"):
        (package / "rule.py").write_text(text)
        code_digest.cache_clear()
        seen |= {code_digest(("judges",), ()), code_digest(("judges",), ("numpy",))}
    code_digest.cache_clear()
    assert len(seen) == 4


def test_a_list_is_the_same_when_it_comes_from_the_index():
    run_record(40)
    first, again = (CliRunner().invoke(app, ["list", "--json"]) for _ in range(2))
    assert (first.exit_code, again.stdout) == (0, first.stdout)
    (row,) = [row for row in json.loads(again.stdout) if row["paper"] == SLUG]
    assert row["runs"]["cpu"] == 1
