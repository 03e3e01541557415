"""Scores of parts of a benchmark, such as the problems of one level or subject."""

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
    """Return score in percent, 95 % interval and n for each value of a field, in sorted order.

    Problems without a value are in no part.

    Raises:
        BadValue: scores cannot be split by this field.
    """
    if field not in PARTS:
        raise BadValue(f"scores by {field!r}: expected one of {', '.join(PARTS)}")
    values: Mapping[str, Any] = {p.id: getattr(p, field) for p in benchmark.load()}
    groups: dict[Any, list[Sample]] = defaultdict(list)
    for sample in samples:
        if values[sample.id] is not None:
            groups[values[sample.id]].append(sample)
    scores: dict[str, dict[str, float]] = {}
    for value in sorted(groups):
        (part_score,) = score(groups[value], benchmark, (metric,))
        scores[str(value)] = {
            "value": part_score.value,
            "low": part_score.low,
            "high": part_score.high,
            "n": part_score.n,
        }
    return scores
