"""Derives again what records state, from other records and from the paper's module.

Only the records that tables and reports show are checked. Superseded records, and those of pocket
worlds that no longer exist, are only compared with their digests.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from core.paper import Paper
from core.records.answers import seal_of, with_texts
from core.records.fair import is_tuned
from core.records.passed import code_digest
from core.records.record import Record, latest
from core.records.schema import (
    ClaimsRecord,
    RunRecord,
    TuningRecord,
    claims_of,
    place_of,
    runs_of,
    tunings_of,
)
from core.settings.canonical import digest_of
from core.settings.run_settings import HELD_OUT
from core.stages.sources import model_folder, version_here
from core.verdicts.plan_digests import REMEDY, plan_changes
from core.verdicts.simulations import simulation_problems, with_simulations
from core.verdicts.up_to_date import asked_problems, factor_of, tuning_problems
from core.verdicts.verdict_records import at_other_settings, changed_claims, judged_runs
from eval.errors import ReproError

QUESTION = ("mode", "metric", "n", "samples", "seed", "temperature", "top_p", "draw")  # of a row
HELD_OUT_SETTINGS = ("data", "heldout_problems", "eval_max_tokens", "threads")
OFTEN_ALIKE = 99.0  # percent of right answers from which on arms of one start may err alike


def derived_problems(paper: Paper, records: Sequence[Record]) -> Iterator[str]:
    """Yield a line for each statement of the shown records that cannot be derived again."""
    latest_records = latest(records)
    runs, tunings = runs_of(latest_records), tunings_of(latest_records)
    checks = (module_problems(paper, runs, tunings), claims_problems(paper, records))
    for record, lines in chain.from_iterable(checks):
        try:
            yield from (f"{place_of(record)}: {line}" for line in lines)
        except ReproError as error:  # an arm that the module no longer has, or a damaged file
            yield f"{place_of(record)}: {error}"
    yield from simulation_problems(paper, records)
    yield from start_disagreements(runs)
    yield from identical_trainings(paper, runs)


def claims_problems(
    paper: Paper, records: Sequence[Record]
) -> Iterator[tuple[ClaimsRecord, Iterator[str]]]:
    """Yield each shown record of verdicts with the lines on how its runs give others."""
    latest_records = latest(records)
    paper = with_simulations(paper, records)
    for scale in sorted({record["scale"] for record in latest_records}):
        for claims in claims_of([*latest_records, *at_other_settings(records)], scale):
            yield claims, verdict_problems(paper, claims, records)


def module_problems(
    paper: Paper, runs: Sequence[RunRecord], tunings: Sequence[TuningRecord]
) -> Iterator[tuple[RunRecord | TuningRecord, Iterator[str]]]:
    """Yield each run and tuning with the lines on how it differs from the paper's module."""
    chosen = {(tuning["scale"], tuning["arm"]): tuning["best"] for tuning in tunings}
    for run in runs:
        yield run, asked_problems(paper, run, factor_of(run, chosen))
    for tuning in tunings:
        yield tuning, tuning_problems(paper, tuning)


def start_disagreements(runs: Sequence[RunRecord]) -> Iterator[str]:
    """Yield a line for each question that two runs with one starting model answer differently."""
    first: dict[Hashable, tuple[object, RunRecord]] = {}
    for run in runs:
        for question, answer in start_answers(run):
            key = (run["model"]["digest"], run["model"].get("build"), *question)
            other_answer, other_run = first.setdefault(key, (answer, run))
            if other_answer != answer:
                yield (
                    f"{place_of(run)}: {question[0]}: says {answer} of its starting model, "
                    f"{place_of(other_run)} says {other_answer}"
                )


def start_answers(run: RunRecord) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield each question that a run put to its starting model, with the outcome.

    A question is a benchmark and a digest of how it was asked, with the limit of the answer's
    length. The outcome is the digest of the samples, or the held-out accuracy.
    """
    limit = run["config"].get("eval_max_tokens", {"value": None})["value"]
    rows: list[tuple[str, Mapping[str, object]]] = [
        *((row["benchmark"], row) for row in run["start_scores"]),
        *((suite, change["before"]) for suite, change in run["sampling"].items()),
    ]
    for suite, row in rows:
        question = {name: row.get(name) or None for name in QUESTION}
        yield (suite, digest_of([question, limit])), row["digest"]
    curve = run["curves"].get(HELD_OUT)
    if curve and curve[0][0] == 0:
        question = {name: run["config"].get(name) for name in HELD_OUT_SETTINGS}
        yield (HELD_OUT, digest_of(question)), curve[0][1]


def training_identity(paper: Paper, run: RunRecord) -> tuple[str, int, bool]:
    """Return a run's arm and seed, and whether trials chose its learning rate.

    Arms that the paper declares the same at a scale count as one arm.
    """
    arm = paper.same_as(run["arm"], run["scale"]) or run["arm"]
    return arm, run["seed"], is_tuned(run)


def identical_trainings(paper: Paper, runs: Sequence[RunRecord]) -> Iterator[str]:
    """Yield a line for trainings of different arms or seeds with equal weights, samples or curves.

    Sampled answers that training has not changed at all are reported as well. Weights and samples
    of trainings that diverged are not compared: none of their weights is a number. Samples of which
    `OFTEN_ALIKE` percent are right are not compared either, and a reward model has none.
    """
    first: dict[Hashable, RunRecord] = {}
    for run in runs:
        if "weights" not in run["train"]:
            continue  # nothing was trained: each seed may ask the same
        yield from unchanged_samples(run)
        curves = {"curves": run["curves"]}
        parts: dict[str, object] = {"weights": run["train"]["weights"], **curves}
        if any(row["value"] < OFTEN_ALIKE for row in run["scores"]):
            parts["samples"] = [with_texts(row)["digest"] for row in run["scores"]]
        compared = curves if has_diverged(run) else parts
        for name, part in compared.items():
            first_run = first.setdefault((run["scale"], name, digest_of(part)), run)
            if training_identity(paper, first_run) != training_identity(paper, run):
                yield f"{place_of(run)}: its {name} are those of {place_of(first_run)}"


def has_diverged(run: RunRecord) -> bool:
    """Return whether the norm of the gradient was no number at the end of a training.

    A curve has no point where its metric is no number.
    """
    curves = run["curves"]
    norms, losses = curves.get("grad_norm"), curves.get("loss")
    return norms is not None and losses is not None and norms[-1][0] < losses[-1][0]


def unchanged_samples(run: RunRecord) -> Iterator[str]:
    """Yield a line for each suite on which the trained policy's samples equal its start's."""
    for suite, change in run["sampling"].items():
        before, after = (with_texts(change[side])["digest"] for side in ("before", "after"))
        if before == after:
            yield f"{place_of(run)}: its samples on {suite} are those of its starting model"


def verdict_problems(
    paper: Paper, claims: ClaimsRecord, records: Sequence[Record]
) -> Iterator[str]:
    """Yield a line if runs of a verdict record are missing or superseded, or give other verdicts.

    Args:
        paper: the paper whose claims are judged.
        claims: the record of verdicts.
        records: all records of the paper.
    """
    runs = {run["digest"]: run for run in runs_of(records, claims["scale"])}
    tunings = {tuning["digest"]: tuning for tuning in tunings_of(records, claims["scale"])}
    run_digests, tuning_digests = judged_runs(claims), claims.get("tunings", [])
    digests, available = [*run_digests, *tuning_digests], {*runs, *tunings}
    if missing := [digest for digest in digests if digest not in available]:
        yield f"judges runs that are not there: {', '.join(missing)}; restore them"
        return
    superseded = {record["supersedes"] for record in (*runs.values(), *tunings.values())}
    if old := [digest for digest in digests if digest in superseded]:
        yield f"judges runs that newer ones supersede: {', '.join(old)}; run `repro publish`"
    judged_records = [runs[digest] for digest in run_digests]
    trials = [tunings[digest] for digest in tuning_digests]
    yield from judgement_problems(paper, claims, judged_records, trials)


def judgement_problems(
    paper: Paper, claims: ClaimsRecord, runs: Sequence[RunRecord], tunings: Sequence[TuningRecord]
) -> Iterator[str]:
    """Yield a line if the seeds, the plan of a claim or the verdicts do not fit the judged runs.

    Args:
        paper: the paper whose claims are judged.
        claims: the record of verdicts.
        runs: the runs that the record names.
        tunings: the trials that the record names.
    """
    seeds = sorted({run["seed"] for run in runs})
    if runs and seeds != sorted(claims["seeds"]):
        yield f"says that it is over seeds {claims['seeds']}, its runs are of {seeds}"
    replanned = plan_changes(paper, claims, cast(list[Record], runs))
    yield from (f"{slug} {REMEDY}" for slug in replanned)
    changed = changed_claims(paper, claims, cast(list[Record], runs), cast(list[Record], tunings))
    if changed and not replanned:
        yield (
            f"has other verdicts than its runs give now ({', '.join(changed)}): run `repro publish`"
        )


def derived_from(records: Sequence[Record]) -> dict[str, object]:
    """Return all but the paper's module that the outcome of `derived_problems` depends on."""
    models = {run["model"].get("build", run["start_model"]) for run in runs_of(records)}
    return {
        "records": [seal_of(record) for record in records],
        "models": {name: version_here(name) for name in sorted(models) if model_folder(name)},
        "code": code_digest(("core", "eval"), ("numpy", "scipy", "torch")),
    }
