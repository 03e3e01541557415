"""Claims that were tested at other settings too have those verdicts beside the paper's."""

import pytest
from run_records import run_record

from core.pages.render import render_paper
from core.records.places import Shelf, record_file, record_files, results
from core.records.record import read_records, write_record
from core.records.run_samples import sample_files_of
from core.run.check import check_papers
from core.run.publish import move
from core.verdicts.history import unknown_files
from core.verdicts.verdict_records import verdicts_record
from papers.deepseekmath_grpo import PAPER

FASTER = {"learning_rate": 3e-4}


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def judged_at(overrides, right, seeds=3):
    """Verdicts over runs of two arms at such settings, not written yet."""
    runs = [
        run_record(right + (arm == "grpo") * (10 + seed), arm=arm, seed=seed, overrides=overrides)
        for arm in ("grpo", "online-rft")
        for seed in range(seeds)
    ]
    return verdicts_record(PAPER, "cpu", runs)


def page():
    (path,) = render_paper(PAPER)
    return path.read_text()


def test_a_record_is_published_with_its_samples_and_those_that_it_supersedes():
    old = run_record(35, overrides=FASTER)
    new, standard = run_record(36, overrides=FASTER), run_record(36)
    assert new["supersedes"] == old["digest"]
    assert record_files(shelf=Shelf.PUBLISHED) == []
    move([standard])
    published = record_file(PAPER.slug, standard["digest"])
    assert record_files(shelf=Shelf.PUBLISHED) == [published]
    move([new])
    assert {path.stem for path in record_files()} == {r["digest"] for r in (old, new, standard)}
    assert record_files() == record_files(shelf=Shelf.PUBLISHED)
    assert all(results() in path.parents for path, _ in sample_files_of(new))
    assert list(unknown_files([PAPER.slug])) == []


def test_the_page_shows_them_where_they_are_over_the_seeds_of_a_first_look():
    write_record(judged_at({}, 30))
    assert "; with learning_rate" not in page()
    other = write_record(judged_at(FASTER, 35))
    write_record(judged_at({"beta": 0.1}, 35, seeds=2))
    shown = page()
    claims = [row["id"] for row in other["verdicts"] if row["runs"]]
    assert shown.count("; with learning_rate=0.0003: ") == len(claims) > 0
    assert "beta=0.1" not in shown
    assert other["digest"] in shown


def test_the_paper_s_own_verdicts_stay_what_they_were():
    write_record(judged_at({}, 30))
    before = page().split("## Claims")[1].split("A claim is judged")[0]
    write_record(judged_at(FASTER, 10))
    assert page().split("## Claims")[1].split("A claim is judged")[0] == before


def test_other_verdicts_than_their_runs_give_are_found_and_made_again():
    write_record(judged_at({}, 30))
    wrong = judged_at(FASTER, 35)
    row = next(row for row in wrong["verdicts"] if row["runs"])
    right, row["verdict"] = row["verdict"], "refuted" if row["verdict"] != "refuted" else "held"
    move([write_record(wrong), *read_records(PAPER.slug)])
    problems = "\n".join(check_papers([PAPER.slug])[PAPER.slug])
    assert f"has other verdicts than its runs give now ({row['id']})" in problems
    assert f"; with learning_rate=0.0003: {right}, " in page()
