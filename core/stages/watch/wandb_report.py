"""Sends the records of an order or a sweep to W&B, as a run beside those of the trainings."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from core.paper import Paper
from core.records.metric_names import metric_names
from core.records.schema import Record, RunRecord, runs_of
from core.records.verdict_row import VerdictRow
from core.settings.canonical import digest_of

JOB, SWEEP = "verdicts", "sweep"
SCORED = ("benchmark", "mode", "metric", "value", "low", "high", "n")
JUDGED = ("id", "statement", "verdict", "effect", "low", "high", "reason")


def send_report(
    paper: Paper,
    scale: str,
    records: Iterable[Record],
    claims: Record | None = None,
    folder: Path | None = None,
) -> None:
    """Send the scores of runs to W&B, with verdicts and pages if there are any.

    The summary holds each score's mean over seeds, a table every score. Reports of the same
    verdicts, or of the same runs of a sweep, are one W&B run.

    Args:
        paper: The paper.
        scale: The name of the scale.
        records: The records of the runs.
        claims: The record of the verdicts; None for a sweep.
        folder: The folder of the pages.
    """
    import wandb  # only there with the extra of the same name

    runs = runs_of(records)
    verdicts: list[VerdictRow] = claims["verdicts"] if claims else []
    with wandb.init(**report_arguments(paper, scale, runs, claims)) as run:
        table: Any = wandb.Table  # its constructor is half typed
        tables = {"scores": table(columns=["arm", "seed", *SCORED], data=score_table(runs))}
        if verdicts:
            rows = [[row[name] for name in JUDGED] for row in verdicts]
            tables["verdicts"] = table(columns=[*JUDGED], data=rows)
        run.log(tables)
        summary: Any = run.summary  # half typed too
        summary.update(mean_scores(runs))
        summary.update({f"verdict/{row['id']}": row["verdict"] for row in verdicts})
        if folder is not None:
            report = wandb.Artifact(f"{paper.slug}-{scale}-report", type="report")
            report.add_dir(str(folder))
            run.log_artifact(report)


def report_arguments(
    paper: Paper, scale: str, runs: Sequence[RunRecord], claims: Record | None
) -> dict[str, Any]:  # Any: arguments of several types
    """Return the arguments of `wandb.init` for a report."""
    job, key = SWEEP, digest_of([run["digest"] for run in runs])
    config: dict[str, object] = {"paper": paper.slug, "scale": scale}
    if claims is not None:
        job, key = JOB, claims["digest"]
        config["overrides"] = claims["overrides"]
    return {
        "project": os.environ.get("WANDB_PROJECT", "huggingface"),
        "id": f"{job}-{key}",
        "name": f"{job} at {scale}, {len(runs)} runs",
        "group": os.environ.get("WANDB_RUN_GROUP", paper.slug),
        "job_type": job,
        "tags": [paper.family, scale],
        "config": config,
        "resume": None if os.environ.get("WANDB_MODE") == "offline" else "allow",
    }


def score_table(runs: Iterable[RunRecord]) -> list[list[object]]:
    """Return a row of arm, seed and the columns `SCORED` for every score."""
    return [
        [run["arm"], run["seed"], *(row[name] for name in SCORED)]
        for run in runs
        for row in run["scores"]
    ]


def mean_scores(runs: Iterable[RunRecord]) -> dict[str, float]:
    """Return the mean of every score over the seeds, by `score/arm/benchmark/mode/metric`."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs:
        for row, metric in zip(run["scores"], metric_names(run["scores"]), strict=True):
            name = "/".join(("score", run["arm"], row["benchmark"], row["mode"], metric))
            values[name].append(row["value"])
    return {name: mean(scores) for name, scores in values.items()}
