"""The projected size of all records and samples, against what lies there."""

import pytest
from run_records import run_record

from core.bench.checkout import projected_bytes
from core.run.places import results
from eval.errors import BadValue

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def test_it_is_the_size_of_the_runs_that_are_there_and_more_papers_share_their_start():
    for right, arm in ((30, "grpo"), (40, "rft")):
        run_record(right, arm=arm, at_k=arm == "grpo")
    there = sum(path.stat().st_size for path in results().rglob("*") if path.is_file())
    one = projected_bytes(SLUG, papers=1, seeds=1, arms=2)
    assert one == pytest.approx(there)
    assert projected_bytes(SLUG, papers=1, seeds=5, arms=2) == pytest.approx(5 * one)
    two, three = (projected_bytes(SLUG, papers=papers, seeds=1, arms=2) for papers in (2, 3))
    assert three - two == pytest.approx(two - one)
    assert two < 2 * one


def test_without_runs_nothing_is_projected():
    with pytest.raises(BadValue, match="no runs of"):
        projected_bytes(SLUG, papers=1, seeds=3)
