"""Names of the metrics of a run's scores, of which two may differ in their temperature alone."""

from collections import defaultdict
from collections.abc import Sequence

from core.records.schema import ScoreRow

Key = tuple[str, str, str]  # benchmark, mode and metric


def metric_names(rows: Sequence[ScoreRow]) -> list[str]:
    """Return the metric of each score of a run, with the temperature where only this differs.

    The name is `pass@8 at 0.2` if the same benchmark and mode have `pass@8` at another temperature
    too, else `pass@8`.
    """
    temperatures: defaultdict[Key, set[float]] = defaultdict(set)
    for row in rows:
        temperatures[key_of(row)].add(temperature_of(row))
    return [
        f"{row['metric']} at {temperature_of(row):g}"
        if len(temperatures[key_of(row)]) > 1
        else row["metric"]
        for row in rows
    ]


def key_of(row: ScoreRow) -> Key:
    """Return the benchmark, mode and metric of a score."""
    return row["benchmark"], row["mode"], row["metric"]


def temperature_of(row: ScoreRow) -> float:
    """Return the temperature of the sampling of a score; 0 for greedy answers."""
    return row.get("temperature", 0.0)
