"""Checks whether records of runs and trials match what their paper's module asks for now."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from core.claims import START
from core.paper import Paper
from core.records.agreement import agree
from core.records.fair import best_of, is_tuned
from core.records.record import latest, read_records
from core.records.sample_files import score_rows
from core.records.schema import Record, RunRecord, TuningRecord, runs_of, tunings_of
from core.records.sealed import is_sealed
from core.settings.canonical import canonical
from core.settings.resolve import resolve
from core.settings.resolved import Resolved
from core.settings.run_settings import HELD_OUT, TRIAL_SEED
from core.stages.chain import Chain
from core.stages.record import request_of, size_of
from core.stages.sources import model_folder, version_here
from core.verdicts.trials import rate_of, trials_of


def factor_of(run: RunRecord, chosen: Mapping[tuple[str, str], float]) -> float | None:
    """Return the factor by which trials scaled a run's learning rate.

    Args:
        run: the record.
        chosen: the best factor by scale and arm, from the records of trials.

    Returns:
        1.0 for a run at its arm's own rate, and None for one whose trials are not in `chosen`.
    """
    return chosen.get((run["scale"], run["arm"])) if is_tuned(run) else 1.0


def recorded_runs(runs: Sequence[Chain]) -> list[Record | None]:
    """Return the up-to-date record of each run, None for a run without one.

    Args:
        runs: chains of one paper.
    """
    if not runs:
        return []
    records = {
        (run["scale"], run["arm"], run["seed"], is_tuned(run)): run
        for run in runs_of(latest(read_records(runs[0].resolved.paper.slug)))
    }
    return [recorded_run(chain, records.get(identity_of(chain))) for chain in runs]


def identity_of(chain: Chain) -> tuple[str, str, int, bool]:
    """Return a run's scale, arm and seed, and whether trials chose its learning rate."""
    resolved = chain.resolved
    return resolved.scale, resolved.arm, chain.seed, resolved.factor != 1


def recorded_run(chain: Chain, run: RunRecord | None) -> Record | None:
    """Return the record if it has today's settings and all that claims read of its arm."""
    paper, arm = chain.resolved.paper, chain.resolved.arm
    if run is None or any(asked_problems(paper, run, chain.resolved.factor)):
        return None
    available = {
        "curve": {*run["curves"]},
        "probabilities": {*run.get("probabilities", {})},
        "samples": {change["mirrors"] for change in run["sampling"].values()},
    }
    needs = [pair for claim in paper.claims for pair in claim.needs]
    required = [need for need_arm, need in needs if need_arm in (arm, START)]
    complete = all(need.name in available.get(need.kind, {need.name}) for need in required)
    return cast(Record, run) if complete else None


def recorded_trials(resolved: Resolved) -> Record | None:
    """Return the up-to-date record of an arm's learning-rate trials, None if there is none."""
    for tuning in tunings_of(latest(read_records(resolved.paper.slug)), resolved.scale):
        if tuning["arm"] == resolved.arm and not any(tuning_problems(resolved.paper, tuning)):
            return cast(Record, tuning)
    return None


def asked_problems(paper: Paper, run: RunRecord, factor: float | None) -> Iterator[str]:
    """Yield how a run's settings, model, scores and length differ from its paper's module.

    Args:
        paper: the paper as its module describes it now.
        run: the record.
        factor: of its learning rate, from `factor_of`.
    """
    if factor is None:
        yield "its learning rate was chosen by trials that are not there: restore them"
        return
    if factor == 1 and is_tuned(run):
        return  # later trials chose the arm's own rate: this run is shown nowhere
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
    build, expected_build = run["model"].get("build"), chain.start.chosen.build.get("build")
    if build != expected_build:
        yield f"it began with the build {build}, its seed asks for {expected_build}"
    if run["main"] and is_sealed(run):
        yield "the texts of its answers are absent, which are stored of main arms: run it again"
    yield from start_problems(chain, run)
    yield from draw_problems(chain, run)
    yield from unrequested_problems(chain, run)
    if resolved.family.trains:
        trained_steps, max_steps = run["train"]["steps"], resolved.config.get("max_steps")
        yield from length_problems(max_steps, trained_steps, run["curves"])


def tuning_problems(paper: Paper, tuning: TuningRecord) -> Iterator[str]:
    """Yield how recorded trials differ from what their arm asks for and what their curves give."""
    resolved = resolve(paper, arm=tuning["arm"], scale=tuning["scale"])
    yield from config_problems(resolved, tuning)
    yield from start_problems(Chain(resolved, tuning["seed"]), tuning)
    if tuning["seed"] != TRIAL_SEED:
        yield f"its seed is {tuning['seed']}, that of trials is {TRIAL_SEED}"
    rows, max_steps = tuning["trials"], resolved.config.get("max_steps")
    recorded = [[row["factor"], row["learning_rate"]] for row in rows]
    expected = [[trial.factor, rate_of(trial)] for trial in trials_of(resolved)]
    if not agree(recorded, expected):
        yield (
            f"it tried {recorded}, factors and learning rates, its arm asks for {expected}: "
            "run it again"
        )
    if len({tuple(row["curve"][0]) for row in rows}) > 1:
        yield "its trials begin with different held-out accuracies, though all with one model"
    for row in rows:
        yield from length_problems(max_steps, row["steps"], {HELD_OUT: row["curve"]})
    if tuning["best"] != (best := best_of(rows)["factor"]):
        yield f"its best factor is {tuning['best']}, its curves give {best:g}"


def config_problems(resolved: Resolved, record: RunRecord | TuningRecord) -> Iterator[str]:
    """Yield a line for each setting whose recorded value is not what its arm asks for."""
    requested = cast(dict[str, object], canonical(request_of(resolved)["config"]))
    for name in sorted(requested.keys() | record["config"].keys()):
        if (recorded := record["config"].get(name)) != requested.get(name):
            yield f"{name} is {recorded}, its arm asks for {requested.get(name)}: run it again"


def start_problems(chain: Chain, run: RunRecord | TuningRecord) -> Iterator[str]:
    """Yield a line if the files of the starting model have changed since the run.

    A model that is not on this machine, or that a preparation trains, is not compared.
    """
    name = chain.start.model
    if chain.start.chosen.trained is None and model_folder(name) is not None:
        recorded, current = run["model"]["digest"], version_here(name)
        if recorded != current:
            model = f"{chain.start.subject} of the digest {recorded}"
            yield f"it began with {model}, which is now {current}"


def draw_problems(chain: Chain, run: RunRecord) -> Iterator[str]:
    """Yield a line for each score on another draw of test problems than the run's seed asks for."""
    questions = [stage.question for stage in chain.evaluations(chain.policy)]
    draws = {question.suite: question.part.get("draw") for question in questions}
    for suite, _, row in score_rows(run):
        if suite in draws and row.get("draw") != draws[suite]:
            yield (
                f"{suite} is of draw {row.get('draw')}, its seed asks for {draws[suite]}: "
                "run it again"
            )


def unrequested_problems(chain: Chain, run: RunRecord) -> Iterator[str]:
    """Yield a line each for recorded scores and Maj@K curves that the arm is not asked for."""
    questions = [stage.question for stage in chain.evaluations(chain.policy)]
    scored = {(question.mirrors, question.mode) for question in questions if not question.curves}
    sampled = {question.mirrors for question in questions if question.curves}
    if extra := {(row["mirrors"], row["mode"]) for row in run["scores"]} - scored:
        listed = ", ".join(f"{name} in the mode {mode}" for name, mode in sorted(extra))
        yield f"scores on {listed}, which its arm is not asked for"
    if extra := {change["mirrors"] for change in run["sampling"].values()} - sampled:
        yield f"Maj@K on {', '.join(sorted(extra))}, which its arm is not asked for"


def length_problems(
    max_steps: object, trained_steps: int, curves: Mapping[str, Sequence[Sequence[float]]]
) -> Iterator[str]:
    """Yield a line if training has not `max_steps` steps, and one for each curve that exceeds it.

    Args:
        max_steps: what the arm asks for; compared only if it is a positive integer.
        trained_steps: the recorded number of steps.
        curves: points of step and value by metric.
    """
    if isinstance(max_steps, int) and max_steps > 0 and trained_steps != max_steps:
        yield f"{trained_steps} steps, its arm asks for {max_steps}"
    for name, points in curves.items():
        steps = [step for step, *_ in points]
        if steps != sorted(set(steps)) or (steps and steps[-1] > trained_steps):
            yield f"the curve {name} goes to step {steps[-1]}, in training's {trained_steps} steps"
