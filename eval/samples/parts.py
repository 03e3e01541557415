"""Scores of parts of a benchmark: of the problems that share a value of one of their fields."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from eval.errors import BadValue
from eval.samples.store import Sample
from eval.sets.benchmarks import Benchmark
from eval.stats.summary import score

PARTS = ("level", "subject", "language")  # fields of a problem by which scores can be split


def score_parts(
    samples: Sequence[Sample], benchmark: Benchmark, metric: str, field: str
) -> dict[str, dict[str, float]]:
    """By each value of a field, in order: the score in percent, its 95 % interval and n.

    Problems without a value are in no part.

    Raises:
        BadValue: problems have no such field.
    """
    if field not in PARTS:
        raise BadValue(f"scores by {field!r}: expected one of {', '.join(PARTS)}")
    values: Mapping[str, Any] = {p.id: getattr(p, field) for p in benchmark.load()}
    groups: dict[Any, list[Sample]] = defaultdict(list)
    for sample in samples:
        if values[sample.id] is not None:
            groups[values[sample.id]].append(sample)
    found: dict[str, dict[str, float]] = {}
    for value in sorted(groups):
        (one,) = score(groups[value], benchmark, (metric,))
        found[str(value)] = {"value": one.value, "low": one.low, "high": one.high, "n": one.n}
    return found
