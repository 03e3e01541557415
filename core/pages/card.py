"""The card beside the model that a run trained: of what, how, how well, and which claims it met."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from core.families.table import find_family
from core.pages.runs import title_of
from core.pages.tables import scale_tables
from core.paper import Paper
from core.records.files import write_atomic
from core.records.found import models_here
from core.records.schema import Record, RunRecord, runs_of
from core.records.verdict_row import VerdictRow
from core.settings.canonical import canonical_text
from core.stages.stage import CARD
from eval.tables import render

TEMPLATE = Path(__file__).parent / "templates" / "model_card.md"


def write_cards(paper: Paper, runs: Iterable[Record], verdicts: Sequence[VerdictRow]) -> None:
    """Write a card into the folder of each model that these runs trained on this machine."""
    folders = models_here()
    for run in runs_of(runs):
        folder = folders.get(run["train"].get("weights", ""))
        if folder is not None:
            write_atomic(folder / CARD, str(card_of(paper, run, verdicts)))


def card_of(paper: Paper, run: RunRecord, verdicts: Sequence[VerdictRow]) -> ModelCard:
    """Return the card of a run's model, with the verdicts that use the run."""
    name = f"{paper.slug}-{run['arm']}-{run['seed']}"
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=row["benchmark"],
            dataset_name=title_of(row["benchmark"]),
            metric_type=row["metric"],
            metric_name=f"{row['metric']}, {row['mode']}",
            metric_value=row["value"],
        )
        for row in run["scores"]
    ]
    overrides = [f"{key}={elsewhere(value)}" for key, value in sorted(run["overrides"].items())]
    config = sorted(run["config"].items())
    options = ["--arm", run["arm"], "--seed", str(run["seed"]), "--at", run["scale"]]
    tables = scale_tables(paper, cast(list[Record], [run]), run["scale"])
    gives_rewards = find_family(paper.family_of(run["arm"])).gives_rewards
    card: Any = ModelCard  # its class methods are half typed
    return card.from_template(
        ModelCardData(
            library_name="transformers",
            pipeline_tag=f"text-{'classification' if gives_rewards else 'generation'}",
            model_name=name,
            tags=["repro", paper.slug, paper.family, run["arm"]],
            eval_results=results,
        ),
        template_path=str(TEMPLATE),
        model_name=name,
        paper=paper,
        address=paper.address,
        run=run,
        start=elsewhere(run["start_model"]),
        settings=[(name, elsewhere(one["value"]), one["source"]) for name, one in config],
        command=shlex.join(["repro", "run", paper.slug, *options, *overrides]),
        table="".join(render(table, "md") for table in tables[:1]),
        verdicts=[one for one in verdicts if run["digest"] in one["runs"]],
    )


def elsewhere(value: object) -> str:
    """Return a value as text for another machine: only the last part of an absolute path."""
    if isinstance(value, str):
        return Path(value).name if Path(value).is_absolute() else value
    return canonical_text(value)
