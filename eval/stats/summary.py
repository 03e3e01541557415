"""Scores of graded samples: Top1, Avg@K, Maj@K and Pass@K with what a number must carry."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from eval.errors import BadValue
from eval.grading import GRADER_VERSION
from eval.samples.store import Sample
from eval.samples.transcripts import programs_run
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import PAL
from eval.stats.estimates import (
    GATE_LEVEL,
    LEVEL,
    Estimate,
    bootstrap,
    mean_interval,
    pass_at_k,
    proportion,
    variance_parts,
)
from eval.stats.voting import Ballots

METRIC = re.compile(r"top1|(?P<name>avg|maj|maj-first|pass)@(?P<k>[1-9]\d*)")


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number in percent, its 95 % interval, and what is needed to judge it.

    `limited` when the problems are not the whole test set of `total`: a table marks such a score.
    `drawn` says how such a part was chosen, if it was chosen here. `truncated`
    (None: not known), `unanswered` and `undecided` are shares of all samples in percent; undecided
    ones, where the grader reached no verdict, count as wrong, and `timeouts` says how many of them
    passed its deadline. With tools, `programs` were run, and `executor_errors` of them gave an
    error instead of an output. `low90` and `high90` are what a comparison with a printed number
    needs. With several samples of a problem `question_variance` is that of the problems' true rates
    and `sample_variance` that of one sample around its problem's rate.
    """

    benchmark: str
    metric: str
    value: float
    low: float
    high: float
    n: int
    samples: int
    method: str
    limited: bool
    truncated: float | None
    unanswered: float
    undecided: float
    timeouts: int
    low90: float
    high90: float
    question_variance: float | None
    sample_variance: float | None
    mode: str = "cot"
    grader: str = GRADER_VERSION
    seed: int = 0
    programs: int = 0
    executor_errors: int = 0
    total: int | None = None
    drawn: str | None = None


def score(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    metrics: Sequence[str] = ("top1",),
    *,
    mode: str = "cot",
    seed: int = 0,
) -> list[Score]:
    """One score for each metric: `top1`, `avg@K`, `maj@K`, `maj-first@K` or `pass@K`.

    `maj@K` is the expected vote among any K of the samples, tied answers sharing it; `maj-first@K`
    the vote among the first K, where of tied answers the first seen wins.

    Raises:
        BadValue: samples of another benchmark, missing or doubled samples, an unknown metric,
            or a K that the samples cannot give.
    """
    rows = by_problem(samples, benchmark.name)
    ballots = Ballots(rows)
    cut = [s.truncated for s in samples if s.truncated is not None]
    between, within = spread(rows)
    ran, failed = programs_of(samples) if mode in ("tir", PAL) else (0, 0)
    return [
        Score(
            benchmark=benchmark.name,
            metric=metric,
            value=100 * found.value,
            low=max(0.0, 100 * found.low),
            high=min(100.0, 100 * found.high),
            n=len(rows),
            samples=len(rows[0]),
            method=found.method,
            limited=len(rows) != benchmark.n,
            truncated=share(cut) if len(cut) == len(samples) else None,
            unanswered=share([s.extracted is None for s in samples]),
            undecided=share([s.correct is None for s in samples]),
            timeouts=sum(s.rule == "timeout" for s in samples),
            low90=max(0.0, 100 * gated.low),
            high90=min(100.0, 100 * gated.high),
            question_variance=between,
            sample_variance=within,
            mode=mode,
            seed=seed,
            programs=ran,
            executor_errors=failed,
            total=benchmark.n,
        )
        for metric in metrics
        for found, gated in [[estimate(ballots, metric, seed, x) for x in (LEVEL, GATE_LEVEL)]]
    ]


def programs_of(samples: Sequence[Sample]) -> tuple[int, int]:
    """How many programs the samples' transcripts show, and how many of them ended in an error."""
    found = [programs_run(sample.output) for sample in samples]
    return sum(ran for ran, _ in found), sum(failed for _, failed in found)


def spread(rows: Sequence[Sequence[Sample]]) -> tuple[float, float] | tuple[None, None]:
    """The variance between problems and within one, of right as 1; None from single samples."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return None, None
    return variance_parts([[float(s.correct is True) for s in row] for row in rows])


def curve(samples: Sequence[Sample], ks: Sequence[int], *, seed: int = 0) -> dict[str, list[float]]:
    """Maj@K and Pass@K in percent with 95 % intervals; columns k, maj, maj_low, ..., pass_high."""
    ballots = Ballots(by_problem(samples, samples[0].benchmark if samples else ""))
    columns: dict[str, list[float]] = {"k": list(ks)}
    for name in ("maj", "pass"):
        found = [estimate(ballots, f"{name}@{k}", seed) for k in ks]
        columns[name] = [100 * e.value for e in found]
        columns[f"{name}_low"] = [max(0.0, 100 * e.low) for e in found]
        columns[f"{name}_high"] = [min(100.0, 100 * e.high) for e in found]
    return columns


def by_problem(samples: Sequence[Sample], benchmark: str) -> list[list[Sample]]:
    """The samples of each problem in the order of drawing, the same number for each.

    Raises:
        BadValue: no samples, samples of another benchmark, or gaps and doubles among them.
    """
    rows: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.benchmark != benchmark:
            raise BadValue(f"sample {sample.id} is of {sample.benchmark}, expected {benchmark}")
        rows[sample.id].append(sample)
    if not rows:
        raise BadValue(f"no samples of {benchmark or 'any benchmark'}")
    counts = Counter(len(row) for row in rows.values())
    k = max(counts)
    for key, row in rows.items():
        if sorted(s.sample for s in row) != list(range(k)):
            found = sorted(s.sample for s in row)
            raise BadValue(
                f"{benchmark}: problem {key} has the numbers {found} as `sample`, expected each of "
                f"0 to {k - 1} once"
            )
    return [sorted(row, key=lambda s: s.sample) for row in rows.values()]


def estimate(ballots: Ballots, metric: str, seed: int, level: float = LEVEL) -> Estimate:
    """The metric over all problems as a share of 1."""
    match = METRIC.fullmatch(metric)
    if match is None:
        raise BadValue(f"metric {metric!r}: expected top1, avg@K, maj@K, maj-first@K or pass@K")
    name, n = match["name"] or "top1", len(ballots.rows[0])
    k = int(match["k"] or 1)
    if (name in ("top1", "avg") and k != n) or k > n:
        raise BadValue(
            f"{metric} from {n} samples per problem: top1 needs exactly 1, avg@K exactly K, "
            "maj@K and pass@K at least K"
        )
    values = values_of(ballots, name, k, seed)
    if n == 1 or name == "maj-first":
        return proportion(round(sum(values)), len(values), level)
    if len(values) == 1:
        return Estimate(values[0], 0.0, 1.0, "one problem")
    if name == "avg":
        return mean_interval(values, level)
    return bootstrap(values, seed=seed, level=level)


def values_of(ballots: Ballots, name: str, k: int, seed: int) -> list[float]:
    """Each problem's value of a metric, a share of 1."""
    if name == "maj":
        return ballots.expected(k, seed)
    if name == "maj-first":
        return ballots.first_seen(k)
    right = [sum(s.correct is True for s in row) for row in ballots.rows]
    n = len(ballots.rows[0])
    return [pass_at_k(n, c, k) for c in right] if name == "pass" else [c / n for c in right]


def share(flags: Sequence[bool]) -> float:
    """Percent of true flags."""
    return 100 * sum(flags) / len(flags)


def metrics(samples: int) -> tuple[str, ...]:
    """What K samples a problem can give: top1 alone, or the mean, both votes and the best of K."""
    names = ("avg", "maj", "maj-first", "pass")
    return ("top1",) if samples == 1 else tuple(f"{name}@{samples}" for name in names)
