"""The record of a profile: rates, accuracies, curves and the values of every probe and seed."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from core.claims import Measure, MissingMeasure
from core.claims.gates import AccuracyChange
from core.profiles.algorithms import Algorithm
from core.profiles.entries import SCALE
from core.profiles.probes import Probe
from core.profiles.runs import ProfileRuns, Request
from core.profiles.trainings import Training
from core.records.fair import final
from core.records.record import Record, machine, new_record
from core.records.sample_files import sample_files
from core.settings.canonical import canonical
from core.settings.own_trainer import trainer_key
from core.stages.kernels import PROCESSOR, acting_kernels, processor
from eval.json_lines import JsonObject

ROOM = "profile"  # the folder of the records
SHOWN = ("reward", "held_out/accuracy", "entropy", "completions/mean_length")  # curves


def profile_record(request: Request, runs: ProfileRuns, seconds: float) -> Record:
    """Return the record of a profile, which is not written yet.

    Args:
        request: What was asked.
        runs: The finished runs.
        seconds: How long they took.
    """
    algorithm = request.algorithm
    return new_record(
        ROOM,
        paper=ROOM,
        scale=SCALE,
        arm=algorithm.name,
        config=config_of(algorithm),
        data=[probe.name for probe in request.probes],
        seeds=[*request.seeds_of(request.trainings[0])],
        kernels=kernels_here(),
        rates={base: rate_fields(runs, base) for base in runs.trials},
        trainings={t.name: training_fields(runs, t) for t in request.trainings},
        probes={probe.name: probe_fields(request, runs, probe) for probe in request.probes},
        timings={"wall_s": round(seconds, 1), "machine": machine()},
    )


def config_of(algorithm: Algorithm) -> JsonObject:
    """Return the fields of a record that say what an algorithm is."""
    return {
        "family": algorithm.family,
        "settings": canonical(algorithm.settings),
        "trainer": trainer_key(algorithm.trainer) if algorithm.trainer else None,
    }


def kernels_here() -> dict[str, str]:
    """Return the kernels that act in this process, and the processor."""
    return {**acting_kernels(), PROCESSOR: processor()}


def has_answer(record: Record, request: Request) -> bool:
    """Return whether a record holds the profile that is asked for, made with the kernels here."""
    seeds = request.seeds_of(request.trainings[0])
    return (
        record["config"] == config_of(request.algorithm)
        and record["kernels"] == kernels_here()
        and all(has_probe(record, probe) for probe in request.probes)
        and {*seeds} <= {*record["seeds"]}
    )


def has_probe(record: Record, probe: Probe) -> bool:
    """Return whether a record holds a probe by its measure; older records do not name measures."""
    row = record["probes"].get(probe.name)
    return row is not None and row.get("measure", str(probe.measure)) == str(probe.measure)


def rate_fields(runs: ProfileRuns, base: str) -> JsonObject:
    """Return the learning rates that were tried in a training, and which was chosen.

    By the curve of held-out accuracy `repro clean` finds the stage of a trial.
    """
    tried = [
        {
            "factor": row["factor"],
            "rate": row["learning_rate"],
            "accuracy": final(row),
            "curve": row["curve"],
        }
        for row in runs.trials[base]
    ]
    return {"tried": tried, "best": runs.best(base)["learning_rate"]}


def training_fields(runs: ProfileRuns, training: Training) -> JsonObject:
    """Return the runs of a training, and each curve's mean, lowest and highest value over seeds.

    By the digests of weights and answers `repro clean` finds the stages of a run.
    """
    records = runs.records.get(training.name, {})
    failures = runs.failures.get(training.name, {})
    curves = {name: mean_curve(list(records.values()), name) for name in SHOWN}
    return {
        "failures": {str(seed): reason for seed, reason in failures.items()},
        "runs": [
            {
                "seed": seed,
                "weights": record["train"].get("weights"),
                "accuracy": [*AccuracyChange().stand(record, training.name)],
                "answers": sorted(sample_files(record)),
            }
            for seed, record in records.items()
        ],
        "curves": {name: curve for name, curve in curves.items() if curve},
    }


def mean_curve(records: Sequence[JsonObject], name: str) -> list[list[float]]:
    """Return steps with the mean, the lowest and the highest value over runs."""
    runs = [dict(record["curves"].get(name, ())) for record in records]
    shared = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    values = {step: [run[step] for run in runs] for step in shared}
    return [
        [step, *(round(x, 6) for x in (fmean(v), min(v), max(v)))] for step, v in values.items()
    ]


def probe_fields(request: Request, runs: ProfileRuns, probe: Probe) -> JsonObject:
    """Return the values of a probe and of its statistic, one for each seed, or why it has none."""
    if not request.algorithm.enters(probe.training):
        family = request.algorithm.family
        return {"reason": f"the family {family} is not trained in this world"}
    failures = runs.failures.get(probe.place, {})
    if failures:
        seed, reason = next(iter(failures.items()))
        return {"reason": f"seed {seed} failed: {reason}"}
    records = runs.records[probe.place]
    try:
        values = read(probe.measure, records, probe.place)
    except MissingMeasure:
        return {"reason": f"{probe.measure} is not measured in this family"}
    try:
        statistic = read(probe.statistic.measure, records, probe.place)
    except MissingMeasure:
        statistic = []
    measured = {"measure": str(probe.measure), "seeds": [*records]}
    return {**measured, "values": values, "statistic": statistic}


def read(measure: Measure, records: Mapping[int, JsonObject], arm: str) -> list[float]:
    """Return a measure of each run.

    Raises:
        MissingMeasure: a run lacks what the measure reads.
    """
    return [measure.read(record, arm) for record in records.values()]
