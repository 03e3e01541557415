"""What trials of learning rates say, and which runs of an arm are at the rate that they chose."""

from collections.abc import Iterable, Mapping
from math import log
from typing import Any

from core.records.schema import Record, TrialRow, TuningRecord, tunings_of
from core.settings.run_settings import ON_TRIAL


def best_of(trials: Iterable[TrialRow]) -> TrialRow:
    """The trial that ends with the highest held-out accuracy.

    Of equal ones it is that next to the arm's own rate, and the lower of two such.
    """
    return max(trials, key=lambda one: (final(one), -abs(log(one["factor"])), -one["factor"]))


def final(trial: TrialRow) -> float:
    """The held-out accuracy with which a trial ends."""
    return trial["curve"][-1][1]


def at_edge(tuning: TuningRecord) -> bool:
    """Whether no rate on the other side of the best one was tried."""
    factors = [trial["factor"] for trial in tuning["trials"]]
    return tuning["best"] in (min(factors), max(factors))


def is_tuned(record: Mapping[str, Any]) -> bool:  # Any: a record of any kind
    """Whether it is of a run whose learning rate trials chose, another than its arm's own."""
    rate = record.get("config", {}).get("learning_rate")
    return record["kind"] == "run" and rate is not None and rate["source"].endswith(ON_TRIAL)


def fair(records: Iterable[Record]) -> list[Record]:
    """The records without those runs of an arm that stand beside others at a better rate."""
    kept = list(records)
    moved = {(one["scale"], one["arm"]) for one in tunings_of(kept) if one["best"] != 1}
    there = {(run["scale"], run["arm"]) for run in kept if is_tuned(run)} & moved
    return [
        r for r in kept if r["kind"] != "run" or is_tuned(r) == ((r["scale"], r["arm"]) in there)
    ]


def at_own_rates(runs: Iterable[Record]) -> list[Record]:
    """The runs with the learning rate that the paper, its profile or the arm says."""
    return [run for run in runs if not is_tuned(run)]
