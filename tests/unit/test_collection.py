"""The collection that the speed of commands is measured on: papers and records like real ones."""

import json
from pathlib import Path

import pytest
from run_records import run_record

from core.bench.collection import collection
from core.bench.commands import output, repro
from core.records.places import ACCEPTED, root
from core.records.record import read_record, read_records
from core.records.run_samples import file_problem, sample_files_of
from core.run.publish import move
from eval.errors import BadValue

SLUG = "deepseekmath-grpo"


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))


def test_every_copy_is_a_paper_with_runs_and_their_samples():
    run_record(40)
    run_record(30, seed=1)
    move(read_records(SLUG))
    with collection(SLUG, papers=3, runs=4) as environment:
        listed = json.loads(output(repro("list", "--json"), **environment))
        runs = {row["paper"]: row["runs"]["cpu"] for row in listed if row["runs"]["cpu"]}
        assert runs == {"copy-01": 4, "copy-02": 4, SLUG: 4}
        folder = Path(environment["REPRO_ROOT"]) / "results"
        records = [read_record(path) for path in folder.glob("*/*.json") if path.name != ACCEPTED]
        assert len(records) == 12
        for record in records:
            for path, sets in sample_files_of(record):
                there = folder / path.relative_to(root() / "results")
                assert file_problem(there, sets) == ""


def test_without_runs_there_is_nothing_to_copy():
    with pytest.raises(BadValue, match="no runs of deepseekmath-grpo"), collection(SLUG, 2, 2):
        pass


@pytest.mark.long
@pytest.mark.parametrize(("arm", "sealed"), [("grpo", False), ("rft", True)])
def test_a_collection_passes_its_check(arm, sealed):
    run_record(40, arm=arm, sealed=sealed)
    move(read_records(SLUG))
    with collection(SLUG, papers=2, runs=2) as environment:
        output(repro("publish"), **environment)
        for _ in range(2):
            found = json.loads(output(repro("check", "--json"), **environment))
            assert {"copy-01", SLUG, "speed"} <= set(found)
            assert not any(found.values())
