"""One run from data to record: an arm at a scale with a seed, each stage done once."""

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from core.data.load import load_training_data
from core.data.sets import find_sets
from core.families.table import find_family
from core.models.load import load_policy, load_tokenizer
from core.rollout.chat import chat_text
from core.run.files import copy_atomic, digest_of, file_digest, folder_files
from core.run.places import results
from core.run.records.record import Record, machine, new_record, write_record
from core.run.resolve import Resolved
from core.run.settings import NEUTRAL
from core.run.spread.launch import launch
from core.run.stages.evaluate import Scored, evaluate
from core.run.stages.inputs import data_stage, model_folder, start_stage, train_stage
from core.run.stages.stage import DONE, run_stage, say
from core.run.stages.train import train_model, write_rows


def run_arm(resolved: Resolved, seed: int, *, force: bool = False) -> Record:
    """All stages of one run and its record; what is there already is taken as it is."""
    began = monotonic()
    data = run_data(resolved, force=force)
    start = run_start(resolved, force=force)
    stage = train_stage(resolved, seed)
    if (stage.folder / DONE).is_file() and not force:
        say(f"{resolved.arm} seed {seed}: trained before, runs/{stage.folder.name}")
    trained = run_stage(stage, lambda folder: _train(resolved, seed, folder), force=force)
    folder = stage.folder / "model"
    after = evaluate(resolved, stage, str(folder), force=force)
    before = score_start(resolved)  # last: by now another process has often done it
    publish_samples(resolved.paper.slug, before, after)
    train = {k: v for k, v in trained.items() if k not in ("curves", "phases")}
    return write_record(
        new_record(
            "run",
            paper=resolved.paper.slug,
            scale=resolved.scale,
            arm=resolved.arm,
            main=resolved.arm == resolved.paper.main_arm,
            seed=seed,
            config={n: {"value": v.value, "source": v.source} for n, v in recorded(resolved)},
            overrides={n: v.value for n, v in recorded(resolved) if n in resolved.overrides},
            start_model=start["name"],
            size=size_of(start["parameters"]),
            model=start,
            data=data,
            train=train,
            start_scores=before.scores,
            scores=after.scores,
            curves=trained["curves"],
            sampling=paired(before, after),
            timings={
                "phases": trained["phases"],
                "wall_s": round(monotonic() - began, 1),
                "machine": machine(),
            },
        )
    )


def run_data(resolved: Resolved, *, force: bool = False) -> dict[str, Any]:
    """The data stage's outputs: name, digest and number of the training rows."""
    return run_stage(data_stage(resolved), lambda folder: _data(resolved, folder), force=force)


def run_start(resolved: Resolved, *, force: bool = False) -> dict[str, Any]:
    """The start stage's outputs: name, digest and size of the starting model."""
    return run_stage(start_stage(resolved), lambda _: _start(resolved), force=force)


def score_start(resolved: Resolved, *, force: bool = False) -> Scored:
    """The starting model's scores: one stage for all arms and seeds."""
    return evaluate(resolved, start_stage(resolved), resolved.run.model, force=force)


def recorded(resolved: Resolved) -> list[tuple[str, Any]]:
    """The settings that a record holds: all but those that only say how a run is watched."""
    return [(name, value) for name, value in resolved.values.items() if name not in NEUTRAL]


def paired(before: Scored, after: Scored) -> dict[str, Any]:
    """Maj@K and Pass@K of each sampled suite, before and after."""
    return {
        suite: {"mirrors": curve["mirrors"], "before": before.at_k[suite], "after": curve}
        for suite, curve in after.at_k.items()
    }


def publish_samples(slug: str, *scored: Scored) -> None:
    """Copy the samples beside the records, under their digest."""
    for digest, path in (item for one in scored for item in one.files.items()):
        target = results() / slug / "samples" / f"{digest}.jsonl.gz"
        if not target.exists() or file_digest(target) != file_digest(path):
            copy_atomic(path, target)


def size_of(parameters: int | None) -> str | None:
    """A number of parameters as a table shows it: 0.9M, 7.0B."""
    if parameters is None:
        return None
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.1f}M"


def _data(resolved: Resolved, folder: Path) -> Mapping[str, object]:
    name = resolved.run.data
    rows = load_training_data(name)
    own = all(one.source.holds_out for one in find_sets(name))
    valid = load_training_data(name, split="valid") if own else None
    count = write_rows(rows, valid, find_family(resolved.paper.family).columns, folder)
    return {"name": name, "rows": count, "digest": file_digest(folder / "rows.jsonl")}


def _start(resolved: Resolved) -> Mapping[str, object]:
    name = resolved.run.model
    chat_text(load_tokenizer(name), "?")  # or it ends here, before any training
    model = load_policy(name)
    folder = model_folder(name)
    return {
        "name": name,
        "digest": digest_of(folder_files(folder)) if folder else None,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def _train(resolved: Resolved, seed: int, folder: Path) -> Mapping[str, object]:
    train = train_model if resolved.run.launch is None else launch
    return train(resolved, seed, data_stage(resolved).folder, folder)
