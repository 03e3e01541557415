"""Scores beside the numbers that were printed for their benchmarks."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias  # Any: JSON of several types

from eval.benchmarks import find_benchmark
from eval.errors import BadValue
from eval.summary import Score

Printed: TypeAlias = dict[str, tuple[float, float]]  # a percentage and its rounding, by benchmark


def as_rows(scores: Sequence[Score], printed: Printed) -> list[dict[str, Any]]:
    """Scores as JSON; `against` is what one says about the number printed for its benchmark.

    Compared is the mean over answers (top1, avg@K), with the benchmark's own margin.
    """
    from eval.comparisons import gate  # scipy.stats is slow to import

    rows = [asdict(one) for one in scores]
    for one, row in zip(scores, rows, strict=True):
        if one.benchmark in printed and one.metric.partition("@")[0] in ("top1", "avg"):
            value, rounding = printed[one.benchmark]
            margin = find_benchmark(one.benchmark).margin
            found = gate(one.value, one.low90, one.high90, value, margin, rounding)
            row["against"] = {"reported": value, **asdict(found)}
    return rows


def read_reported(text: str | None, scored: Sequence[str]) -> Printed:
    """`gsm8k=88.2,math=51.7` as numbers with half a unit of their last digits.

    Raises:
        BadValue: it is not of that form, or names a benchmark that is not scored.
    """
    from eval.comparisons import printed_number

    parts = [part.strip().partition("=") for part in (text or "").split(",") if part.strip()]
    strangers = sorted({name for name, _, _ in parts} - set(scored))
    if strangers:
        raise BadValue(
            f"reported scores of {', '.join(strangers)}: expected NAME=PERCENT for what is "
            f"scored here: {', '.join(scored)}"
        )
    if len({name for name, _, _ in parts}) < len(parts):
        raise BadValue(f"reported scores {text}: expected one for each benchmark")
    return {name: printed_number(value) for name, _, value in parts}
