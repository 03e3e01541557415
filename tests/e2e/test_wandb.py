"""`report_to=wandb` without a network: what W&B wrote is read back, and is what our files say."""

import json
from pathlib import Path

import pytest
import wandb
from changed_settings import changed
from wandb_files import records, rows

from core.records.record import read_records
from core.records.schema import runs_of
from core.stages.watch.wandb_report import JOB, SWEEP


@pytest.fixture
def send(repro, root, settings, monkeypatch):
    """What W&B has of a short run: the files of its trainings, and last that of what came of it."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(root))
    monkeypatch.setenv("WANDB_SILENT", "true")

    def run(*given):
        asked = changed(settings, "report_to=wandb", *given)
        result = repro("run", "deepseekmath-grpo", "--jobs", 1, *asked)
        wandb.teardown()  # as where a process ends: before it a file need not be whole
        assert result.exit_code == 0, result.output
        of_all = (JOB, SWEEP)
        return sorted(root.rglob("*.wandb"), key=lambda p: any(name in p.name for name in of_all))

    return run


def test_wandb_gets_the_log_and_what_came_of_it(send, root):
    training, verdicts = send()
    check_training(training, root)
    check_verdicts(verdicts)


def test_wandb_gets_the_scores_of_a_sweep(send):
    *trainings, swept = send("max_steps=1", "--sweep", "learning_rate=0.01,0.02")
    assert len(trainings) == 2
    (run,) = [record.run for record in records(swept) if record.run.run_id]
    assert (run.run_group, run.job_type) == ("deepseekmath-grpo", SWEEP)
    told = summary(records(swept))
    for run in runs_of(read_records()):
        arm = f"grpo learning_rate={run['config']['learning_rate']['value']}"
        for row in run["scores"]:
            assert told[f"score/{arm}/{row['benchmark']}/cot/{row['metric']}"] == row["value"]


def summary(found):
    """The last value of each name in a run's summary."""
    return {
        "/".join(item.nested_key) or item.key: json.loads(item.value_json)
        for record in found
        for item in record.summary.update
    }


def check_verdicts(path):
    """Scores and verdicts are those of the records, and the pages come with them."""
    found = [*records(path)]
    (run,) = [record.run for record in found if record.run.run_id]
    (claims,) = [r for r in read_records() if r["kind"] == "claims"]
    assert (run.run_group, run.job_type) == ("deepseekmath-grpo", JOB)
    assert run.run_id == f"{JOB}-{claims['digest']}"
    told = summary(found)
    for verdict in claims["verdicts"]:
        assert told[f"verdict/{verdict['id']}"] == verdict["verdict"]
    (scored,) = runs_of(read_records())
    for row in scored["scores"]:
        assert told[f"score/grpo/{row['benchmark']}/cot/{row['metric']}"] == row["value"]
    (report,) = [r.artifact for r in found if r.artifact.type == "report"]
    names = {entry.path for entry in report.manifest.contents}
    assert {"report.md", "report.html"} <= names
    assert not any("/" in name for name in names)  # of no other scale


def check_training(path, root):
    """Each row of the log is there once, and what the run is found by."""
    sent = {row["train/global_step"]: row for row in rows(path) if "train/entropy" in row}
    log = next(Path(root, "runs").glob("train-*/log.jsonl")).read_text().splitlines()
    logged = {row["step"]: row for row in map(json.loads, log) if "entropy" in row}
    assert sorted(sent) == sorted(logged) == [1, 2, 3]
    for step, row in logged.items():
        for name in ("reward", "entropy", "kl", "grad_norm"):
            assert sent[step][f"train/{name}"] == row[name]
    assert len({row["entropy"] for row in logged.values()}) == 3

    (run,) = [record.run for record in records(path) if record.run.run_id]
    assert run.run_group == "deepseekmath-grpo"
    assert run.display_name.startswith("grpo seed 0 ")
    assert "learning_rate=0.01" in run.display_name
    assert [*run.tags] == ["grpo", "cpu"]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["paper"] == "deepseekmath-grpo"
    assert config["sources"]["beta"] == "deepseekmath-grpo s4.2"
    assert config["sources"]["learning_rate"] == "command line"
