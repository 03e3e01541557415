"""Runs every stage of a chain, and writes the record of the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import cast

from core.claims.gates import has_chosen_problems
from core.records.files import copy_atomic
from core.records.form_splits import form_splits
from core.records.pair_files import pairs_digest, read_pairs
from core.records.places import own_results, results, stored_file
from core.records.record import (
    Record,
    machine,
    named_record,
    new_record,
    write_record,
)
from core.records.run_samples import write_run_samples
from core.records.schema import QuantityChange, RunRecord
from core.settings.resolved import Resolved
from core.settings.run_settings import CHOOSING, NEUTRAL
from core.stages.browse import write_page
from core.stages.chain import Chain
from core.stages.evaluate import Scored, evaluate
from core.stages.held_out import FOLDER
from core.stages.outcomes import claimed_texts, held_out_outcomes, outcomes_of
from core.stages.pair_quantities import PairQuantities
from core.stages.probabilities import compare_quantities
from core.stages.stage import Outputs
from eval.samples.store import Sample, read_samples
from eval.terminal import say


@dataclass(frozen=True, kw_only=True)
class RunOutputs:
    """The outputs of the stages of one run, before and after training."""

    data: Outputs
    start: Outputs
    train: Outputs
    before: Scored
    after: Scored
    held_out: Scored
    quantities: dict[str, QuantityChange]

    @property
    def files(self) -> dict[str, Path]:
        """The files of all samples by digest."""
        return self.before.files | self.after.files | self.held_out.files


def run_chain(chain: Chain, *, force: bool = False) -> Record:
    """Run the stages of a run that have not finished, write the record of the run, and return it.

    Args:
        chain: The stages.
        force: Whether finished stages run again. Preparations do not, as other runs share them.
    """
    start_time = monotonic()
    outputs = run_stages(chain, force=force)
    record = new_record(
        "run",
        **request_of(chain.resolved),
        **result_fields(chain, outputs),
        **store_pairs(chain),
        timings={
            "phases": outputs.train["phases"],
            "wall_s": round(monotonic() - start_time, 1),
            "machine": machine(),
        },
    )
    return store_record(outputs.files, record)


def run_stages(chain: Chain, *, force: bool) -> RunOutputs:
    """Run the stages of a run that have not finished, and return the outputs of all."""
    for stage in chain.preparations:
        stage.run()
    data = chain.train.data.run(force=force) if chain.train else {}
    start = chain.start.run(force=force)
    trained = train_policy(chain, force=force)
    after = evaluate(chain.evaluations(chain.policy), force=force)
    before = score_start(chain)  # last: by now another process has often done it
    if after.scores or after.at_k:
        write_page(chain)
    quantities = measure(chain, force=force)
    held_out = held_out_files(chain, trained)
    if chain.train and chain.resolved.arm != chain.resolved.paper.main_arm:
        texts = claimed_texts(chain.resolved.paper, chain.resolved.arm)
        after = outcomes_of(after, with_texts=texts)
        trained, held_out = held_out_outcomes(trained, held_out)
    return RunOutputs(
        data=data,
        start=start,
        train=trained,
        before=before,
        after=after,
        held_out=held_out,
        quantities=quantities,
    )


def result_fields(chain: Chain, outputs: RunOutputs) -> dict[str, object]:
    """Return the fields of a run's record that hold its models, scores and curves."""
    before, after, trained = outputs.before, outputs.after, outputs.train
    read = partial(read_staged, outputs.files)
    forms = form_splits(before.scores, after.scores, read) if chain.train else {}
    return {
        "seed": chain.seed,
        "start_model": outputs.start["name"],
        "size": size_of(outputs.start["parameters"]),
        "model": outputs.start,
        "data": outputs.data,
        "train": {k: v for k, v in trained.items() if k not in ("averages", "curves", "phases")},
        "start_scores": before.scores if chain.train else [],
        "scores": after.scores,
        "curves": trained["curves"],
        "sampling": pair_curves(before, after),
        **({"probabilities": outputs.quantities} if outputs.quantities else {}),
        **({"forms": forms} if forms else {}),
    }


def request_of(resolved: Resolved) -> dict[str, object]:
    """Return the fields of a record that identify a run, and its settings.

    Settings in `NEUTRAL` are left out.
    """
    settings = [(name, v) for name, v in resolved.values.items() if name not in NEUTRAL]
    return {
        "paper": resolved.paper.slug,
        "scale": resolved.scale,
        "arm": resolved.arm,
        "main": resolved.arm == resolved.paper.main_arm,
        "config": {
            n: {"value": v.value, "source": v.source} for n, v in settings if n not in CHOOSING
        },
        "overrides": {n: v.value for n, v in settings if n in resolved.overrides},
    }


def run_trial(chain: Chain, *, force: bool = False) -> Outputs:
    """Run the training of a trial, which is evaluated on held-out problems and not on any suite."""
    for stage in (*chain.preparations, chain.data, chain.start):
        stage.run()
    return train_policy(chain, force=force)


def trial_record(chain: Chain, *, force: bool = False) -> Record:
    """Train a trial and measure its probabilities; return a record, which is not written.

    It has scores only if its health is read on them, see `AccuracyChange`.
    """
    trained, before, after = run_trial(chain, force=force), Scored(), Scored()
    data = {"data": chain.train.data.run()} if chain.train else {}
    if has_chosen_problems(data):
        after = evaluate(chain.evaluations(chain.policy), force=force)
        before = score_start(chain)
    return {
        **request_of(chain.resolved),
        "digest": "(trial)",
        "seed": chain.seed,
        **data,
        "train": {"steps": trained["steps"]},
        "curves": trained["curves"],
        "probabilities": measure(chain, force=force),
        "start_scores": before.scores,
        "scores": after.scores,
        "sampling": {},
    }


def train_policy(chain: Chain, *, force: bool = False) -> Outputs:
    """Run the training and return its outputs; with zero steps if the family does not train."""
    train, resolved = chain.train, chain.resolved
    if train is None:
        plan = resolved.family.batches(resolved.preview(), 0, 1, {})
        return {"steps": 0, "plan": plan, "curves": {}, "phases": {}}
    if train.is_done and not force:
        say(f"{resolved.arm} seed {chain.seed}: trained before, runs/{train.folder.name}")
    outputs = train.run(force=force)
    return outputs if chain.policy is train else {**outputs, **chain.policy.run(force=force)}


def score_start(chain: Chain, *, force: bool = False) -> Scored:
    """Return the scores of the starting model, which all arms of a seed share."""
    for stage in chain.preparations:
        stage.run()
    chain.start.run(force=force)
    return evaluate(chain.evaluations(chain.start), force=force)


def measure(chain: Chain, *, force: bool = False) -> dict[str, QuantityChange]:
    """Return the quantities of probabilities that the family declares, before and after."""
    quantities: dict[str, QuantityChange] = {}
    for pair in chain.quantity_pairs:
        quantities |= compare_quantities(*(stage.run(force=force) for stage in pair))
    return quantities


def store_pairs(chain: Chain) -> dict[str, str]:
    """Store the pairs that quantities of a run follow from; return the field of its record."""
    for _, stage in chain.quantity_pairs:
        if isinstance(stage, PairQuantities):
            digest = pairs_digest(read_pairs(stage.file))
            if not stored_file(digest).is_file():
                copy_atomic(stage.file, own_results() / stored_file(digest).relative_to(results()))
            return {"pairs": digest}
    return {}


def pair_curves(before: Scored, after: Scored) -> dict[str, Outputs]:
    """Return Maj@K and Pass@K of each sampled suite, before and after training."""
    return {
        suite: {"mirrors": curve["mirrors"], "before": before.at_k[suite], "after": curve}
        for suite, curve in after.at_k.items()
    }


def held_out_files(chain: Chain, trained: Outputs) -> Scored:
    """Return the files of the held-out answers of a training, by digest."""
    files: Mapping[str, str] = trained.get("held_out", {})
    folder = (chain.train or chain.start).folder / FOLDER
    return Scored(files={digest: folder / f"{step}.jsonl.gz" for step, digest in files.items()})


def store_record(files: Mapping[str, Path], record: Record) -> Record:
    """Store the samples that a record refers to, then write the record, or keep an equal one.

    A record that stands already keeps its samples with texts if it has them.
    """
    named_copy = cast(RunRecord, named_record(record))
    write_run_samples(named_copy, partial(read_staged, files), own_results())
    return write_record(record)


def read_staged(files: Mapping[str, Path], digest: str) -> list[Sample]:
    """Return the samples of a digest from the file of the stage that made them."""
    return read_samples(files[digest], digest)


def size_of(parameters: int | None) -> str | None:
    """Return a number of parameters as tables show it: 0.9M, 7.0B; None if unknown."""
    if parameters is None:
        return None
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.1f}M"
