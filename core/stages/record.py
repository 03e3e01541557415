"""Runs every stage of a chain, and writes the record of the run."""

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, cast

from core.records.files import copy_atomic, file_digest
from core.records.form_splits import form_splits
from core.records.places import SAMPLES, own_results, results
from core.records.record import (
    Record,
    machine,
    new_record,
    predecessors,
    standing,
    write_record,
)
from core.records.sample_files import sample_files
from core.settings.canonical import canonical
from core.settings.resolve import Resolved
from core.settings.run_settings import CHOOSING, NEUTRAL
from core.stages.browse import write_page
from core.stages.chain import Chain
from core.stages.evaluate import Scored, evaluate
from core.stages.outcomes import held_out_outcomes, outcomes_of
from core.stages.probabilities import compared
from core.stages.stage import Outputs
from core.stages.watch.heldout import FOLDER
from eval.terminal import say


def run_chain(chain: Chain, *, force: bool = False) -> Record:
    """Run the stages of a run that have not finished, write the record of the run, and return it.

    Args:
        chain: The stages.
        force: Whether finished stages run again. Preparations do not, as other runs share them.
    """
    began, resolved = monotonic(), chain.resolved
    for stage in chain.preparations:
        stage.run()
    data = chain.train.data.run(force=force) if chain.train else {}
    start = chain.start.run(force=force)
    trained = train_policy(chain, force=force)
    after = evaluate(chain.evaluations(chain.policy), force=force)
    before = score_start(chain)  # last: by now another process has often done it
    write_page(chain)
    measured = measure(chain, force=force)
    seen = held_out(chain, trained)
    if chain.train and resolved.arm != resolved.paper.main_arm:
        after, (trained, seen) = outcomes_of(after), held_out_outcomes(trained, seen)
    files = before.files | after.files | seen.files
    forms = form_splits(before.scores, after.scores, files.__getitem__) if chain.train else {}
    return stored(
        files,
        new_record(
            "run",
            **request_of(resolved),
            seed=chain.seed,
            start_model=start["name"],
            size=size_of(start["parameters"]),
            model=start,
            data=data,
            train={k: v for k, v in trained.items() if k not in ("curves", "phases")},
            start_scores=before.scores if chain.train else [],
            scores=after.scores,
            curves=trained["curves"],
            sampling=paired(before, after),
            **({"probabilities": measured} if measured else {}),
            **({"forms": forms} if forms else {}),
            timings={
                "phases": trained["phases"],
                "wall_s": round(monotonic() - began, 1),
                "machine": machine(),
            },
        ),
    )


def request_of(resolved: Resolved) -> dict[str, Any]:
    """Return the fields of a record that identify a run, and its settings.

    Settings in `NEUTRAL` are left out.
    """
    recorded = [(name, v) for name, v in resolved.values.items() if name not in NEUTRAL]
    return {
        "paper": resolved.paper.slug,
        "scale": resolved.scale,
        "arm": resolved.arm,
        "main": resolved.arm == resolved.paper.main_arm,
        "config": {
            n: {"value": v.value, "source": v.source} for n, v in recorded if n not in CHOOSING
        },
        "overrides": {n: v.value for n, v in recorded if n in resolved.overrides},
    }


def run_trial(chain: Chain, *, force: bool = False) -> Outputs:
    """Run the training of a trial, which is evaluated on held-out problems and not on any suite."""
    for stage in (*chain.preparations, *chain.training[:-1]):
        stage.run()
    return train_policy(chain, force=force)


def train_policy(chain: Chain, *, force: bool = False) -> Outputs:
    """Run the training and return its outputs; with zero steps if the family does not train."""
    train, resolved = chain.train, chain.resolved
    if train is None:
        plan = resolved.family.batches(resolved.preview(), 0, 1, {})
        return {"steps": 0, "plan": plan, "curves": {}, "phases": {}}
    if train.done and not force:
        say(f"{resolved.arm} seed {chain.seed}: trained before, runs/{train.folder.name}")
    return train.run(force=force)


def score_start(chain: Chain, *, force: bool = False) -> Scored:
    """Return the scores of the starting model, which all arms of a seed share."""
    for stage in chain.preparations:
        stage.run()
    chain.start.run(force=force)
    return evaluate(chain.evaluations(chain.start), force=force)


def measure(chain: Chain, *, force: bool = False) -> dict[str, Any]:
    """Return the quantities of probabilities that the family declares, before and after."""
    found: dict[str, Any] = {}
    for pair in chain.measured:
        found |= compared(*(stage.run(force=force) for stage in pair))
    return found


def paired(before: Scored, after: Scored) -> dict[str, Any]:
    """Return Maj@K and Pass@K of each sampled suite, before and after training."""
    return {
        suite: {"mirrors": curve["mirrors"], "before": before.at_k[suite], "after": curve}
        for suite, curve in after.at_k.items()
    }


def held_out(chain: Chain, trained: Outputs) -> Scored:
    """Return the files of the held-out answers of a training, by digest."""
    files: Mapping[str, str] = trained.get("held_out", {})
    folder = chain.policy.folder / FOLDER
    return Scored(files={digest: folder / f"{step}.jsonl.gz" for step, digest in files.items()})


def stored(files: Mapping[str, Path], record: Record) -> Record:
    """Store the samples that a record refers to, then write the record, or keep an equal one.

    A record that stands already keeps its samples with texts if it has them.
    """
    content = cast(Record, canonical(record))
    stands = standing(content, predecessors(content)) or content
    named = {digest: files[digest] for digest in sample_files(stands) if digest in files}
    store_samples(named, own_results())
    return write_record(content)


def store_samples(files: Mapping[str, Path], folder: Path) -> None:
    """Copy samples to a folder of records under their digest, unless they are published."""
    for digest, path in files.items():
        target = folder / SAMPLES / f"{digest}.jsonl.gz"
        there = (target, results() / SAMPLES / target.name)
        if not any(one.exists() and file_digest(one) == file_digest(path) for one in there):
            copy_atomic(path, target)


def size_of(parameters: int | None) -> str | None:
    """Return a number of parameters as tables show it: 0.9M, 7.0B; None if unknown."""
    if parameters is None:
        return None
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.1f}M"
