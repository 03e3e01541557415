"""Sends the records of an order or a sweep to W&B, as a run beside those of the trainings."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from core.paper import Paper
from core.records.schema import Record, runs_of
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
    """Send scores, and the verdicts and the pages in a folder if there are some.

    Scores stand in the summary as means over seeds, and in a table one by one. What came of the
    same verdicts, or of the same runs of a sweep, is one W&B run.
    """
    import wandb  # only there with the extra of the same name

    runs = runs_of(records)
    job, key = SWEEP, digest_of([run["digest"] for run in runs])
    config, verdicts = {"paper": paper.slug, "scale": scale}, list[dict[str, Any]]()
    if claims is not None:
        job, key, verdicts = JOB, claims["digest"], claims["verdicts"]
        config["overrides"] = claims["overrides"]
    scores = [(run["arm"], run["seed"], row) for run in runs for row in run["scores"]]
    values: defaultdict[str, list[float]] = defaultdict(list)
    for arm, _, row in scores:
        name = "/".join(("score", arm, row["benchmark"], row["mode"], row["metric"]))
        values[name].append(row["value"])
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", "huggingface"),
        id=f"{job}-{key}",
        name=f"{job} at {scale}, {len(runs)} runs",
        group=os.environ.get("WANDB_RUN_GROUP", paper.slug),
        job_type=job,
        tags=[paper.family, scale],
        config=config,
        resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
    ) as run:
        table: Any = wandb.Table  # its constructor is half typed
        rows = [[arm, seed, *(row[name] for name in SCORED)] for arm, seed, row in scores]
        shown = {"scores": table(columns=["arm", "seed", *SCORED], data=rows)}
        if verdicts:
            judged = [[row[name] for name in JUDGED] for row in verdicts]
            shown["verdicts"] = table(columns=[*JUDGED], data=judged)
        run.log(shown)
        summary: Any = run.summary  # half typed too
        summary.update({name: mean(some) for name, some in values.items()})
        summary.update({f"verdict/{row['id']}": row["verdict"] for row in verdicts})
        if folder is None:
            return
        report = wandb.Artifact(f"{paper.slug}-{scale}-report", type="report")
        report.add_dir(str(folder))
        run.log_artifact(report)
