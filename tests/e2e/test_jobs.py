"""Arms and seeds as jobs of a queue give the records that one process gives."""

import pytest
from changed_settings import changed

PAPER = "deepseekmath-grpo"


def contents(root):
    """The name of every record; it is the digest of what the record says."""
    return {path.name for path in root.glob(f"runs/results/{PAPER}/*.json")}


@pytest.mark.long
def test_jobs_write_the_records_of_one_process(repro, root, settings, tmp_path, monkeypatch):
    few = ("max_steps=1", "eval_limit=2", "heldout_problems=0", "--seeds", "2")
    queued = repro(
        "run", PAPER, *changed(settings, *few), "--on", "local", "--job", "timeout_min=10"
    )
    assert queued.exit_code in (0, 1), queued.output  # a claim may be refuted
    assert queued.stderr.count("] done") == 4  # two seeds, each with its starting model
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path / "alone"))
    alone = repro("run", PAPER, *changed(settings, *few), "--jobs", "1")
    assert alone.exit_code == queued.exit_code
    assert contents(tmp_path / "alone") == contents(root)


def test_a_failed_job_is_one_line(repro, settings):
    done = repro("run", PAPER, *changed(settings, "num_generations=3"), "--on", "local")
    assert done.exit_code == 2
    last = done.stderr.splitlines()[-1]
    assert "is no multiple of num_generations=3" in last


def test_bad_jobs(repro, settings):
    for arguments, message in (
        (("--on", "slrum"), "no cluster 'slrum': did you mean slurm"),
        (("--on", "local", "--job", "nodes=2"), "a parameter of submitit other than nodes"),
        (("--on", "local", "--job", "timeout_minutes=2"), "timeout_minutes"),
    ):
        done = repro("run", PAPER, *settings, *arguments)
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
