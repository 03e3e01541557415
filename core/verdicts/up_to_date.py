"""What records of runs and of trials say that their paper's module does not ask for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from core.claims import START
from core.paper import Paper
from core.records.agreement import agree
from core.records.fair import best_of, is_tuned
from core.records.record import latest, read_records
from core.records.sample_files import score_rows
from core.records.schema import Record, RunRecord, TuningRecord, runs_of, tunings_of
from core.records.sealed import is_sealed
from core.settings.canonical import canonical
from core.settings.resolve import Resolved, resolve
from core.settings.run_settings import HELD_OUT, TRIAL_SEED
from core.stages.chain import Chain
from core.stages.record import request_of, size_of
from core.stages.sources import model_folder, version_here
from core.verdicts.trials import rate_of, trials_of


def factor_of(run: RunRecord, chosen: Mapping[tuple[str, str], float]) -> float | None:
    """That of a run's learning rate, as the trials of its arm chose it; None without trials."""
    return chosen.get((run["scale"], run["arm"])) if is_tuned(run) else 1.0


def recorded_runs(runs: Sequence[Chain]) -> list[Record | None]:
    """For each of these runs of one paper its record, if that tells all that is asked for now."""
    if not runs:
        return []
    records = {
        (run["scale"], run["arm"], run["seed"], is_tuned(run)): run
        for run in runs_of(latest(read_records(runs[0].resolved.paper.slug)))
    }
    return [recorded_run(chain, records.get(place_of(chain))) for chain in runs]


def place_of(chain: Chain) -> tuple[str, str, int, bool]:
    """The scale, arm and seed of a run, and whether trials chose its learning rate."""
    one = chain.resolved
    return one.scale, one.arm, chain.seed, one.factor != 1


def recorded_run(chain: Chain, run: RunRecord | None) -> Record | None:
    """A record, if it has the settings of now and what claims read of its arm."""
    paper, arm = chain.resolved.paper, chain.resolved.arm
    if run is None or any(asked_problems(paper, run, chain.resolved.factor)):
        return None
    held = {
        "curve": {*run["curves"]},
        "probabilities": {*run.get("probabilities", {})},
        "samples": {change["mirrors"] for change in run["sampling"].values()},
    }
    needs = [need for claim in paper.claims for of, need in claim.needs if of in (arm, START)]
    there = all(need.name in held.get(need.kind, {need.name}) for need in needs)
    return cast(Record, run) if there else None


def recorded_trials(resolved: Resolved) -> Record | None:
    """The record of an arm's trials of learning rates, if it tells all that is asked for now."""
    for one in tunings_of(latest(read_records(resolved.paper.slug)), resolved.scale):
        if one["arm"] == resolved.arm and not any(tuning_problems(resolved.paper, one)):
            return cast(Record, one)
    return None


def asked_problems(paper: Paper, run: RunRecord, factor: float | None) -> Iterator[str]:
    """What a run says of its settings, model and length that its paper's module does not."""
    if factor is None:
        yield "its learning rate was chosen by trials that are not there: restore them"
        return
    if factor == 1 and is_tuned(run):
        return  # later trials chose the arm's own rate: it is shown nowhere
    resolved = resolve(paper, arm=run["arm"], scale=run["scale"], factor=factor)
    chain = Chain(resolved, run["seed"])
    yield from config_problems(resolved, run)
    expected = {
        "main": run["arm"] == paper.main_arm,
        "start_model": chain.start.chosen.name,
        "size": size_of(run["model"]["parameters"]),
    }
    for name, value in expected.items():
        if run[name] != value:
            yield f"{name} is {run[name]}, expected {value}"
    if run["main"] and is_sealed(run):
        yield "the texts of its answers are absent, which are stored of main arms: run it again"
    yield from start_problems(chain, run)
    yield from question_problems(chain, run)
    if resolved.family.trains:
        made, steps = run["train"]["steps"], resolved.config.get("max_steps")
        yield from length_problems(steps, made, run["curves"])


def tuning_problems(paper: Paper, tuning: TuningRecord) -> Iterator[str]:
    """What trials say of their settings, rates, length and outcome that follows otherwise."""
    resolved = resolve(paper, arm=tuning["arm"], scale=tuning["scale"])
    yield from config_problems(resolved, tuning)
    yield from start_problems(Chain(resolved, tuning["seed"]), tuning)
    if tuning["seed"] != TRIAL_SEED:
        yield f"its seed is {tuning['seed']}, that of trials is {TRIAL_SEED}"
    rows, steps = tuning["trials"], resolved.config.get("max_steps")
    found = [[row["factor"], row["learning_rate"]] for row in rows]
    now = [[one.factor, rate_of(one)] for one in trials_of(resolved)]
    if not agree(found, now):
        yield f"it tried {found}, factors and learning rates, its arm asks for {now}: run it again"
    if len({tuple(row["curve"][0]) for row in rows}) > 1:
        yield "its trials begin with other held-out accuracies, though all with one model"
    for row in rows:
        yield from length_problems(steps, row["steps"], {HELD_OUT: row["curve"]})
    if tuning["best"] != (best := best_of(rows)["factor"]):
        yield f"its best factor is {tuning['best']}, its curves say {best:g}"


def config_problems(resolved: Resolved, record: RunRecord | TuningRecord) -> Iterator[str]:
    """Settings that a record has otherwise than they are asked for."""
    now = cast(dict[str, Any], canonical(request_of(resolved)["config"]))
    for name in sorted(now.keys() | record["config"].keys()):
        if (found := record["config"].get(name)) != now.get(name):
            yield f"{name} is {found}, its arm asks for {now.get(name)}: run it again"


def start_problems(chain: Chain, run: RunRecord | TuningRecord) -> Iterator[str]:
    """That a run began with another model than the one that is here, if this one is here."""
    name = chain.start.model
    if chain.start.chosen.trained is None and model_folder(name) is not None:
        found, here = run["model"]["digest"], version_here(name)
        if found != here:
            yield f"it began with {chain.start.of} of the digest {found}, which is now {here}"


def question_problems(chain: Chain, run: RunRecord) -> Iterator[str]:
    """Scores and Maj@K that a run holds and its arm is not asked for."""
    asked = [stage.question for stage in chain.evaluations(chain.policy)]
    draws = {one.suite: one.part.get("draw") for one in asked}
    for suite, _, row in score_rows(run):
        if suite in draws and row.get("draw") != draws[suite]:
            said = f"{suite} is of draw {row.get('draw')}, its seed asks for {draws[suite]}"
            yield f"{said}: run it again"
    scored = {(one.mirrors, one.mode) for one in asked if not one.curves}
    drawn = {one.mirrors for one in asked if one.curves}
    if more := {(row["mirrors"], row["mode"]) for row in run["scores"]} - scored:
        named = ", ".join(f"{name} in the mode {mode}" for name, mode in sorted(more))
        yield f"scores on {named}, which its arm is not asked for"
    if more := {change["mirrors"] for change in run["sampling"].values()} - drawn:
        yield f"Maj@K on {', '.join(sorted(more))}, which its arm is not asked for"


def length_problems(
    steps: object, made: int, curves: Mapping[str, Sequence[Sequence[float]]]
) -> Iterator[str]:
    """Steps or curves that are longer or shorter than what was asked for."""
    if isinstance(steps, int) and steps > 0 and made != steps:
        yield f"{made} steps, its arm asks for {steps}"
    for name, points in curves.items():
        places = [step for step, *_ in points]
        if places != sorted(set(places)) or (places and places[-1] > made):
            yield f"the curve {name} goes to step {places[-1]}, in training's {made} steps"
