"""`report_to=wandb` without a network: what W&B wrote is read back and equals our log."""

import json
from pathlib import Path

from wandb_files import records, rows


def test_wandb_gets_the_numbers_of_the_log(repro, root, settings, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(root))
    monkeypatch.setenv("WANDB_SILENT", "true")
    result = repro("run", "deepseekmath-grpo", "--jobs", 1, *settings, "report_to=wandb")
    assert result.exit_code == 0, result.output
    (path,) = root.rglob("*.wandb")
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
