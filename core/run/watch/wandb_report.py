"""What came of a paper's runs as a run of W&B beside those of the trainings."""

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

from core.paper import Paper
from core.run.records.schema import Record, runs_of

JOB = "verdicts"
SCORED = ("benchmark", "mode", "metric", "value", "low", "high", "n")
JUDGED = ("id", "statement", "verdict", "effect", "low", "high", "reason")


def send_report(paper: Paper, records: Iterable[Record], claims: Record, folder: Path) -> None:
    """Send scores, verdicts and the pages in a folder; those of the same verdicts are one W&B run.

    Scores stand in its summary as means over seeds, and in a table one by one.
    """
    import wandb  # only there with the extra of the same name

    scale, runs = claims["scale"], runs_of(records)
    scores = [(run["arm"], run["seed"], row) for run in runs for row in run["scores"]]
    values: defaultdict[str, list[float]] = defaultdict(list)
    for arm, _, row in scores:
        name = "/".join(("score", arm, row["benchmark"], row["mode"], row["metric"]))
        values[name].append(row["value"])
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", "huggingface"),
        id=f"{JOB}-{claims['digest']}",
        name=f"{JOB} at {scale}, {len(claims['seeds'])} seeds",
        group=os.environ.get("WANDB_RUN_GROUP", paper.slug),
        job_type=JOB,
        tags=[paper.family, scale],
        config={"paper": paper.slug, "scale": scale, "overrides": claims["overrides"]},
        resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
    ) as run:
        table: Any = wandb.Table  # its constructor is half typed
        rows = [[arm, seed, *(row[name] for name in SCORED)] for arm, seed, row in scores]
        run.log(
            {
                "scores": table(columns=["arm", "seed", *SCORED], data=rows),
                "verdicts": table(
                    columns=[*JUDGED],
                    data=[[row[name] for name in JUDGED] for row in claims["verdicts"]],
                ),
            }
        )
        summary: Any = run.summary  # half typed too
        summary.update({name: mean(some) for name, some in values.items()})
        summary.update({f"verdict/{row['id']}": row["verdict"] for row in claims["verdicts"]})
        report = wandb.Artifact(f"{paper.slug}-{scale}-report", type="report")
        report.add_dir(str(folder))
        run.log_artifact(report)
