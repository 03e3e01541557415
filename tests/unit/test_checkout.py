"""The projected size of all records and samples, against what lies there."""

import pytest
from run_records import run_record

from core.bench.checkout import projected_bytes
from core.records.places import own_results
from eval.errors import BadValue

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


@pytest.mark.parametrize("sealed", [False, True])
def test_it_is_the_size_of_the_runs_that_are_there_and_more_papers_share_their_start(sealed):
    run_record(30, at_k=True)
    run_record(40, arm="rft", sealed=sealed)
    there = sum(path.stat().st_size for path in own_results().rglob("*") if path.is_file())
    one = projected_bytes(SLUG, papers=1, seeds=1, arms=2)
    assert one == pytest.approx(there)
    assert projected_bytes(SLUG, papers=1, seeds=5, arms=2) == pytest.approx(5 * one)
    two, three = (projected_bytes(SLUG, papers=papers, seeds=1, arms=2) for papers in (2, 3))
    assert three - two == pytest.approx(two - one)
    assert two < 2 * one


def test_a_paper_whose_other_arms_are_not_run_has_its_main_arm_alone():
    run_record(30)
    one, two = (projected_bytes(SLUG, papers=1, seeds=1, arms=arms) for arms in (1, 2))
    assert two == one


def test_without_runs_nothing_is_projected():
    with pytest.raises(BadValue, match="no runs of"):
        projected_bytes(SLUG, papers=1, seeds=3)
