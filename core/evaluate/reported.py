"""Compares scores with the numbers printed for their benchmarks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TypeAlias

from eval.errors import BadValue
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import Score

Printed: TypeAlias = dict[str, tuple[float, float]]  # a percentage and its rounding, by benchmark


def as_rows(scores: Sequence[Score], printed: Printed) -> list[dict[str, object]]:
    """Return scores as JSON rows, with the verdict on the printed number as `against`.

    Only a mean over answers (top1, avg@K) on the whole benchmark is compared, with the benchmark's
    own margin; a part of a benchmark may be easier than the whole.
    """
    from eval.stats.comparisons import gate  # scipy.stats is slow to import

    rows = [asdict(scored) for scored in scores]
    for scored, row in zip(scores, rows, strict=True):
        mean = scored.metric.partition("@")[0] in ("top1", "avg")
        if scored.benchmark in printed and mean and not scored.limited:
            value, rounding = printed[scored.benchmark]
            margin = find_benchmark(scored.benchmark).margin
            comparison = gate(scored.value, scored.low90, scored.high90, value, margin, rounding)
            row["against"] = {"reported": value, **asdict(comparison)}
    return rows


def refuse_parts(printed: Printed, scored: Mapping[str, int]) -> None:
    """Raise if a printed number would be compared with a part of its benchmark.

    Args:
        printed: The printed numbers by benchmark.
        scored: The number of scored problems by benchmark.

    Raises:
        BadValue: fewer problems are scored than the benchmark has.
        KeyError: a benchmark with a printed number is not in `scored`.
    """
    for name in printed:
        total = find_benchmark(name).n
        if scored[name] < total:
            raise BadValue(
                f"--reported {name}: a printed score covers all {total} problems, but "
                f"{scored[name]} are scored here, so there is no verdict: score the others too, or "
                "leave --reported out"
            )


def read_reported(text: str | None, scored: Sequence[str]) -> Printed:
    """Parse printed scores such as `gsm8k=88.2,math=51.7`.

    Raises:
        BadValue: the text has another form, or names a benchmark that is not scored.
    """
    parts = [part.strip().partition("=") for part in (text or "").split(",") if part.strip()]
    unknown = sorted({name for name, _, _ in parts} - set(scored))
    if unknown:
        raise BadValue(
            f"reported scores of {', '.join(unknown)}: expected NAME=PERCENT for benchmarks that "
            f"are scored here: {', '.join(scored)}"
        )
    if len({name for name, _, _ in parts}) < len(parts):
        raise BadValue(f"reported scores {text}: expected one for each benchmark")
    return {name: percentage(name, value) for name, _, value in parts}


def percentage(name: str, value: str) -> tuple[float, float]:
    """Parse a printed percentage; one below 1 needs a percent sign, as it may be a share.

    Raises:
        BadValue: the text is not a percentage, or may be a share.
    """
    from eval.stats.comparisons import printed_number

    number = printed_number(value.removesuffix("%"))
    if 0 < number[0] < 1 and not value.endswith("%"):
        raise BadValue(
            f"reported {name}={value}: expected percent, such as {name}={100 * number[0]:g}; for a "
            f"score below one percent write {name}={value}%"
        )
    return number
