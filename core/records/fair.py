"""Choice of a learning rate from trials, and the runs of each arm at the chosen rate."""

from collections.abc import Iterable
from math import log

from core.records.answers import Fields
from core.records.schema import Record, TrialRow, TuningRecord, tunings_of
from core.settings.run_settings import ON_TRIAL


def best_of(trials: Iterable[TrialRow]) -> TrialRow:
    """Return the trial with the highest final held-out accuracy.

    Of equal trials, return the one closest to the arm's own learning rate, then the lowest.

    Raises:
        ValueError: there are no trials.
    """
    return max(
        trials, key=lambda trial: (final(trial), -abs(log(trial["factor"])), -trial["factor"])
    )


def final(trial: TrialRow) -> float:
    """Return the held-out accuracy at the end of a trial."""
    return trial["curve"][-1][1]


def at_edge(tuning: TuningRecord) -> bool:
    """Return whether the best learning rate is the lowest or the highest that was tried."""
    factors = [trial["factor"] for trial in tuning["trials"]]
    return tuning["best"] in (min(factors), max(factors))


def is_tuned(record: Fields) -> bool:
    """Return whether a record is a run at a rate from trials that is not its arm's own."""
    rate = record.get("config", {}).get("learning_rate")
    return record["kind"] == "run" and rate is not None and rate["source"].endswith(ON_TRIAL)


def fair(records: Iterable[Record]) -> list[Record]:
    """Return the records with the runs of each arm at one learning rate.

    This is the rate that trials chose if the arm has runs at this rate, else the arm's own.
    """
    all_records = list(records)
    moved = {
        (tuning["scale"], tuning["arm"])
        for tuning in tunings_of(all_records)
        if tuning["best"] != 1
    }
    tuned_arms = {(run["scale"], run["arm"]) for run in all_records if is_tuned(run)} & moved
    return [
        r
        for r in all_records
        if r["kind"] != "run" or is_tuned(r) == ((r["scale"], r["arm"]) in tuned_arms)
    ]


def at_own_rates(runs: Iterable[Record]) -> list[Record]:
    """Return the records without runs at a learning rate that trials chose."""
    return [run for run in runs if not is_tuned(run)]
