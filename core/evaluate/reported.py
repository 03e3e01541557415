"""Scores beside the numbers that were printed for their benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias  # Any: JSON of several types

from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import Score

Printed: TypeAlias = dict[str, tuple[float, float]]  # a percentage and its rounding, by benchmark


def as_rows(scores: Sequence[Score], printed: Printed) -> list[dict[str, Any]]:
    """Scores as JSON; `against` is what one says about the number printed for its benchmark.

    Compared is the mean over answers (top1, avg@K), with the benchmark's own margin, and only over
    the whole benchmark: a part may be the easier one.
    """
    from eval.stats.comparisons import gate  # scipy.stats is slow to import

    rows = [asdict(one) for one in scores]
    for one, row in zip(scores, rows, strict=True):
        mean = one.metric.partition("@")[0] in ("top1", "avg")
        if one.benchmark in printed and mean and not one.limited:
            value, rounding = printed[one.benchmark]
            margin = find_benchmark(one.benchmark).margin
            found = gate(one.value, one.low90, one.high90, value, margin, rounding)
            row["against"] = {"reported": value, **asdict(found)}
    return rows


def refuse_parts(printed: Printed, scored: Mapping[str, int]) -> None:
    """No verdict on a printed number from a part of its benchmark; `scored` are problems by name.

    Raises:
        BadValue: fewer problems than the benchmark has are scored.
    """
    for name in printed:
        total = find_benchmark(name).n
        if scored[name] < total:
            raise BadValue(
                f"--reported {name}: a printed score is of all {total} problems, here are "
                f"{scored[name]} of them, so there is no verdict: score the others too, or leave "
                "--reported out"
            )


def read_reported(text: str | None, scored: Sequence[str]) -> Printed:
    """`gsm8k=88.2,math=51.7` as numbers with half a unit of their last digits.

    Raises:
        BadValue: it is not of that form, or names a benchmark that is not scored.
    """
    parts = [part.strip().partition("=") for part in (text or "").split(",") if part.strip()]
    strangers = sorted({name for name, _, _ in parts} - set(scored))
    if strangers:
        raise BadValue(
            f"reported scores of {', '.join(strangers)}: expected NAME=PERCENT for what is "
            f"scored here: {', '.join(scored)}"
        )
    if len({name for name, _, _ in parts}) < len(parts):
        raise BadValue(f"reported scores {text}: expected one for each benchmark")
    return {name: percentage(name, value) for name, _, value in parts}


def percentage(name: str, value: str) -> tuple[float, float]:
    """A printed score; one below 1 is written with its sign, as it is likely a share.

    Raises:
        BadValue: it is no percentage, or a share.
    """
    from eval.stats.comparisons import printed_number

    found = printed_number(value.removesuffix("%"))
    if 0 < found[0] < 1 and not value.endswith("%"):
        raise BadValue(
            f"reported {name}={value}: expected percent, such as {name}={100 * found[0]:g}; of a "
            f"score below one percent {name}={value}%"
        )
    return found
