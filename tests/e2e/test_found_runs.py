"""Recorded runs are listed, found by the beginning of their name, and held against each other."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree

import pytest

from core.cli.finding import age
from core.records.found import model_of
from core.records.places import PARQUET, record_file
from core.records.record import read_record, read_records
from core.records.run_samples import read_run_samples

PAPER = "deepseekmath-grpo"


@pytest.fixture
def two(run_once, root, settings):
    """The records of two short runs that differ in their learning rate.

    Nothing is solved: it is the decay that makes two models of them.
    """
    own = ("run", PAPER, "--jobs", "1", *settings[:-1], "weight_decay=0.1")
    folder, _ = run_once(*((*own, f"learning_rate={rate}") for rate in ("0.01", "0.02")))
    copytree(folder, root, dirs_exist_ok=True)
    return [record for record in read_records(PAPER) if record["kind"] == "run"]


def test_two_runs_are_listed_and_compared(repro, two, tmp_path):
    listed = json.loads(repro("runs", PAPER, "--json").stdout)
    assert [row["digest"] for row in listed] == [run["digest"] for run in two]
    assert [read_record(Path(row["path"])) for row in listed] == two
    assert repro("runs", "--arm", "rft").stdout.count("\n") == 1  # the head alone
    lines = repro("runs", "--seed", "0", "--at", "cpu").stdout.splitlines()
    assert "learning_rate=0.02" in lines[-1]
    assert f"{two[-1]['scores'][0]['value']:.1f} [" in lines[-1]

    names = [run["digest"][:10] for run in two]
    figure = tmp_path / "both.svg"
    found = json.loads(
        repro("compare", *names, "--samples", "99", "--figure", figure, "--json").stdout
    )
    assert {"name": "learning_rate", "before": "0.01", "after": "0.02"} in found["settings"]
    assert [row["name"] for row in found["settings"]] == ["learning_rate"]
    assert names[0][:8] in figure.read_text()
    for row, before, after in zip(found["scores"], two[0]["scores"], two[1]["scores"], strict=True):
        assert row["difference"]["paired"]
        assert row["difference"]["delta"] == pytest.approx(after["value"] - before["value"])
        right = [
            {sample.id for sample in read_run_samples(run, one["digest"]) if sample.correct}
            for run, one in zip(two, (before, after), strict=True)
        ]
        assert {each["problem"] for each in row["changed"]} == right[0] ^ right[1]
    shown = repro("compare", *names)
    assert shown.exit_code == 0
    assert "learning_rate" in shown.stdout
    itself = json.loads(repro("compare", names[0], names[0], "--json").stdout)
    assert (itself["settings"], itself["curves"]) == ([], [])
    assert all(row["difference"]["delta"] == 0 and not row["changed"] for row in itself["scores"])


def test_only_what_no_record_refers_to_is_deleted(repro, two, root):
    """And that after a yes; the run that stands is found done by its command."""
    assert "nothing" in repro("clean").stdout
    gone, stands = two
    for record in read_records(PAPER):
        if gone["digest"] in (record["digest"], *record.get("runs", [])):
            record_file(PAPER, record["digest"]).unlink()
    killed = root / "runs" / "train-0123456789abcdef"
    (killed / "checkpoint-1").mkdir(parents=True)
    listed = {Path(row["path"]) for row in json.loads(repro("clean", "--json").stdout)}
    assert {path for path in listed if path.name.startswith("train-")} == {model_of(gone).parent}
    samples = {path.stem for path in listed if path.suffix == PARQUET}
    assert samples == {gone["digest"]}
    asked = repro("clean")
    assert "nothing was deleted" in asked.stdout
    assert all(path.exists() for path in listed)
    assert "deleted" in repro("clean", "--yes").stdout.splitlines()[-1]
    assert not any(path.exists() for path in listed)
    assert killed.exists()
    assert repro("clean", "--unfinished", "--yes").exit_code == 0
    assert not killed.exists()
    assert model_of(stands).is_dir()
    assert json.loads(repro("clean", "--unfinished", "--json").stdout) == []


def test_the_model_of_a_run_is_scored_again(repro, two, root):
    for run in two:
        asked = ("--benchmarks", "pocket-gsm8k", "--limit", 4, "--max-tokens", 12, "--json")
        scored = repro("eval", run["digest"][:8], *asked)
        assert scored.exit_code == 0, scored.output
        (row,) = json.loads(scored.stdout)
        (before,) = [one for one in run["scores"] if one["benchmark"] == "pocket-gsm8k"]
        assert (row["value"], row["n"]) == (before["value"], before["n"])
    for folder in (root / "runs").glob("train-*"):
        folder.rename(folder.with_name(f"gone-{folder.name}"))
    gone = repro("eval", two[0]["digest"], "--benchmarks", "pocket-gsm8k")
    assert gone.exit_code == 2
    assert "train it there with `repro run deepseekmath-grpo --arm grpo --seed 0" in gone.stderr
    assert "no run 'ffffff'" in repro("eval", "ffffff", "--benchmarks", "pocket-gsm8k").stderr


def test_a_run_that_is_not_there_or_not_one_is_named_in_a_line(repro, two):
    for name, words in (("zzzz", "no run 'zzzz'"), ("", "begin like that")):
        refused = repro("compare", name, two[0]["digest"])
        assert refused.exit_code == 2
        (line,) = refused.stderr.strip().splitlines()
        assert words in line
    (claims, *_) = [r["digest"] for r in read_records(PAPER) if r["kind"] == "claims"]
    refused = repro("compare", claims, two[0]["digest"])
    assert refused.exit_code == 2
    assert "is no record of a run" in refused.stderr
    assert "did you mean" in repro("runs", "deepseekmath-grpoo").stderr


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=-1), "0 s"),
        (timedelta(seconds=7), "7 s"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=30), "1 d"),
        (timedelta(hours=3), "3 h"),
    ],
)
def test_an_age_is_in_the_largest_unit_of_which_there_is_one(ago, shown):
    assert age((datetime.now(UTC) - ago).isoformat()) == shown
