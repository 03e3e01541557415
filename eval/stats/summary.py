"""Scores of graded samples: Top1, Avg@K, Maj@K, Pass@K and others, with intervals and counts."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypedDict

from eval.errors import BadValue
from eval.grading import GRADER_VERSION
from eval.samples.store import Sample
from eval.samples.transcripts import programs_run
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import PAL
from eval.sets.prompts import UNTOOLED
from eval.stats.estimates import (
    GATE_LEVEL,
    LEVEL,
    Estimate,
    bootstrap,
    mean_interval,
    proportion,
    variance_parts,
)
from eval.stats.voting import Ballots

VOTING = 5  # of the highest rated samples
GRAM = 4  # tokens of a gram
# Each problem's value of a metric, from the ballots, K and the seed of drawn votes: a share of 1,
# or a number for "distinct". Those of the halves have values of half of the problems. Those of
# "calibration" depend on the samples of all problems, and only their mean is an error.
VALUES: Mapping[str, Callable[[Ballots, int, int], list[float]]] = {
    "avg": lambda ballots, _k, _seed: ballots.right_shares,
    "maj": lambda ballots, k, seed: ballots.expected_votes(k, seed),
    "maj-first": lambda ballots, k, _seed: ballots.first_votes(k),
    "pass": lambda ballots, k, _seed: ballots.passes(k),
    "distinct": lambda ballots, k, _seed: ballots.distinct_right(k),
    "distinct-4": lambda ballots, _k, _seed: ballots.distinct_grams(GRAM),
    "calibration": lambda ballots, _k, _seed: ballots.calibration_gaps,
    "own-output": lambda ballots, _k, _seed: ballots.output_shares,
    "maj-prob": lambda ballots, _k, _seed: ballots.weighted_votes("prob"),
    "maj-norm": lambda ballots, _k, _seed: ballots.weighted_votes("norm"),
    "maj-upper": lambda ballots, k, seed: ballots.votes_of_half(k, seed, agreeing=True),
    "maj-lower": lambda ballots, k, seed: ballots.votes_of_half(k, seed, agreeing=False),
    "rm": lambda ballots, k, _seed: ballots.best_rated(k),
    "rm-weighted": lambda ballots, _k, _seed: ballots.rated_votes(),
    "rm-vote": lambda ballots, _k, _seed: ballots.votes_of_best(VOTING),
}
OF_PROBABILITIES = ("maj-prob", "maj-norm", "calibration")
OF_TEXTS = ("distinct-4", "own-output")
OF_RATINGS = ("rm", "rm-weighted", "rm-vote")
OF_ALL = ("top1", "avg", *OF_TEXTS, *OF_PROBABILITIES, "rm-weighted", "rm-vote")  # K samples alone
FRACTIONAL = ("distinct-4", "calibration")  # not 1 or 0 even for one sample of a problem
METRIC = re.compile(rf"top1|(?P<name>{'|'.join(VALUES)})@(?P<k>[1-9]\d*)")


@dataclass(frozen=True, kw_only=True)
class Score:
    """A metric of a benchmark in percent, its 95 % interval, and how the samples were graded.

    `low90` and `high90` bound the 90 % interval, which comparisons with a printed number use.
    `limited` says that the problems are not the whole test set of `total`; tables mark such a
    score. `drawn` says how the part was chosen, if it was chosen here. `truncated` (None: not
    known), `unanswered` and `undecided` are shares of all samples in percent. Undecided samples, on
    which the grader reached no verdict, count as incorrect; `timeouts` of them exceeded the
    grader's deadline. With tools, `programs` is the number of programs run, and `executor_errors`
    of them gave an error instead of an output. With several samples of a problem,
    `question_variance` is the variance of the problems' true rates and `sample_variance` that of
    one sample around its problem's rate.
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
    """Return a score for each metric: `top1`, `avg@K`, `maj@K`, `maj-first@K` or `pass@K`.

    `maj@K` is the expected majority vote among any K of the samples, shared by tied answers;
    `maj-first@K` is the vote among the first K, and the first of tied answers wins. In `maj-prob@K`
    and `maj-norm@K` the votes of all K samples are weighted, see `Ballots.weighted_votes`;
    `maj-upper@K` and `maj-lower@K` are `maj@K` of the half of the problems whose samples agree most
    and least. `distinct@K` is the number of different right answers among any K, as a share of K.
    `distinct-4@K` is the share of different grams of four tokens among the K answers to a problem,
    see `eval.stats.grams`, and `calibration@K` the calibration error of all answers, see
    `eval.stats.calibration`. `own-output@K` is the share of all K samples that hold the output of a
    program, which the model itself has written if nothing was run.
    Of samples that a reward model has rated, `rm@K` is the correctness of the best rated of any K,
    `rm-weighted@K` the vote of all K weighted by their ratings, and `rm-vote@K` the vote of the
    five best rated of all K.

    Raises:
        BadValue: samples of another benchmark, missing or doubled samples, an unknown metric, or a
            K that the samples cannot give.
    """
    rows = samples_by_problem(samples, benchmark.name)
    ballots = Ballots(rows)
    between, within = spread(rows)
    outcomes: Outcomes = {
        "question_variance": between,
        "sample_variance": within,
        **count_outcomes(samples, mode),
    }
    return [score_metric(metric, ballots, benchmark, outcomes, mode, seed) for metric in metrics]


def score_metric(
    metric: str, ballots: Ballots, benchmark: Benchmark, outcomes: "Outcomes", mode: str, seed: int
) -> Score:
    """Return the score of one metric, with the outcomes that all metrics share."""
    metric_estimate = estimate(ballots, metric, seed, LEVEL)
    low, high = percent_interval(metric_estimate)
    low90, high90 = percent_interval(estimate(ballots, metric, seed, GATE_LEVEL))
    return Score(
        benchmark=benchmark.name,
        metric=metric,
        value=100 * metric_estimate.value,
        low=low,
        high=high,
        n=len(ballots.rows),
        samples=len(ballots.rows[0]),
        method=metric_estimate.method,
        limited=len(ballots.rows) != benchmark.n,
        low90=low90,
        high90=high90,
        mode=mode,
        seed=seed,
        total=benchmark.n,
        **outcomes,
    )


class OutcomeCounts(TypedDict):
    """Counts and shares of a `Score` over all samples; the same for every metric."""

    truncated: float | None
    unanswered: float
    undecided: float
    timeouts: int
    programs: int
    executor_errors: int


class Outcomes(OutcomeCounts):
    """The fields of a `Score` that are the same for every metric."""

    question_variance: float | None
    sample_variance: float | None


def count_outcomes(samples: Sequence[Sample], mode: str) -> OutcomeCounts:
    """Count the samples' outcomes; programs are counted in the modes that run them."""
    truncated = [s.truncated for s in samples if s.truncated is not None]
    programs, errors = programs_of(samples) if mode in ("tir", PAL) else (0, 0)
    return {
        "truncated": share(truncated) if len(truncated) == len(samples) else None,
        "unanswered": share([s.extracted is None for s in samples]),
        "undecided": share([s.correct is None for s in samples]),
        "timeouts": sum(s.rule == "timeout" for s in samples),
        "programs": programs,
        "executor_errors": errors,
    }


def percent_interval(share: Estimate) -> tuple[float, float]:
    """Return the interval of a share in percent, cut off at 0 and 100."""
    return max(0.0, 100 * share.low), min(100.0, 100 * share.high)


def programs_of(samples: Sequence[Sample]) -> tuple[int, int]:
    """Return the number of programs in the samples' transcripts and how many ended in an error."""
    counts = [programs_run(sample.output) for sample in samples]
    return sum(ran for ran, _ in counts), sum(failed for _, failed in counts)


def spread(rows: Sequence[Sequence[Sample]]) -> tuple[float, float] | tuple[None, None]:
    """Return the variance of correctness between problems and within one.

    Both are None for a single problem or single samples.
    """
    if len(rows) < 2 or len(rows[0]) < 2:
        return None, None
    return variance_parts([[float(s.correct is True) for s in row] for row in rows])


def curve(samples: Sequence[Sample], ks: Sequence[int], *, seed: int = 0) -> dict[str, list[float]]:
    """Return Maj@K and Pass@K in percent with 95 % intervals for each of `ks`.

    The columns are k, maj, maj_low, maj_high, pass, pass_low, pass_high and distinct, which is the
    number of different right answers among K, the mean over the problems.

    Raises:
        BadValue: there are no samples, some are missing, or a problem has fewer than K.
    """
    ballots = Ballots(samples_by_problem(samples, samples[0].benchmark if samples else ""))
    columns: dict[str, list[float]] = {"k": list(ks)}
    for name in ("maj", "pass"):
        estimates = [estimate(ballots, f"{name}@{k}", seed) for k in ks]
        columns[name] = [100 * e.value for e in estimates]
        intervals = [percent_interval(e) for e in estimates]
        columns[f"{name}_low"] = [low for low, _ in intervals]
        columns[f"{name}_high"] = [high for _, high in intervals]
    columns["distinct"] = [fmean(ballots.distinct_right(k)) for k in ks]
    return columns


def samples_by_problem(samples: Sequence[Sample], benchmark: str) -> list[list[Sample]]:
    """Group samples by problem in the order of drawing, the same number for each problem.

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
    ordered = {key: sorted(row, key=lambda s: s.sample) for key, row in rows.items()}
    k = max(map(len, ordered.values()))
    for key, row in ordered.items():
        numbers = [s.sample for s in row]
        if numbers != list(range(k)):
            raise BadValue(
                f"{benchmark}: problem {key} has the numbers {numbers} as `sample`, expected each "
                f"of 0 to {k - 1} once"
            )
    return list(ordered.values())


def estimate(ballots: Ballots, metric: str, seed: int, level: float = LEVEL) -> Estimate:
    """Return a metric over all problems as a share of 1, with its interval.

    Raises:
        BadValue: an unknown metric, or a K that the samples cannot give.
    """
    n = len(ballots.rows[0])
    name, k = parse_metric(metric, n)
    values = values_of(ballots, name, k, seed)
    if name == "distinct":
        values = [value / k for value in values]
    if name == "maj-first" or (n == 1 and name not in FRACTIONAL):
        return proportion(round(sum(values)), len(values), level)
    if len(values) == 1:
        return Estimate(values[0], 0.0, 1.0, "one problem")
    if name in ("avg", "own-output", *FRACTIONAL):
        return mean_interval(values, level)
    return bootstrap(values, seed=seed, level=level)


def parse_metric(metric: str, n: int) -> tuple[str, int]:
    """Return the name and the K of a metric that n samples per problem can give.

    Raises:
        BadValue: an unknown metric, or a K that n samples cannot give.
    """
    match = METRIC.fullmatch(metric)
    if match is None:
        raise BadValue(
            f"metric {metric!r}: expected {', '.join(['top1', *(f'{name}@K' for name in VALUES)])}"
        )
    name, k = match["name"] or "top1", int(match["k"] or 1)
    if (name in OF_ALL and k != n) or k > n:
        raise BadValue(
            f"{metric} from {n} samples per problem: top1 needs exactly 1, avg@K, "
            "distinct-4@K, calibration@K, own-output@K, weighted votes and rm-vote@K exactly K, "
            "maj@K, pass@K, distinct@K and rm@K at least K"
        )
    return name, k


def values_of(ballots: Ballots, name: str, k: int, seed: int) -> list[float]:
    """Return each problem's value of a metric, "top1" or a key of `VALUES`, for one or more."""
    return VALUES["avg" if name == "top1" else name](ballots, k, seed)


def share(flags: Sequence[bool]) -> float:
    """Return the percentage of true flags; there must be at least one flag."""
    return 100 * sum(flags) / len(flags)


def is_weighted(metric: str) -> bool:
    """Return whether a metric reads the log-probabilities of samples."""
    return metric.partition("@")[0] in OF_PROBABILITIES


def reads_texts(metric: str) -> bool:
    """Return whether a metric reads the texts of samples, not only their answers."""
    return metric.partition("@")[0] in OF_TEXTS


def is_rated(metric: str) -> bool:
    """Return whether a metric reads the ratings of samples."""
    return metric.partition("@")[0] in OF_RATINGS


def metrics(samples: int, mode: str = "cot") -> tuple[str, ...]:
    """Return the metrics that K samples per problem in a mode are scored by.

    One sample gives `top1`, several give avg@K, maj@K, maj-first@K and pass@K. The mode `untooled`
    adds own-output@K.
    """
    names = ("avg", "maj", "maj-first", "pass")
    first = ("top1",) if samples == 1 else tuple(f"{name}@{samples}" for name in names)
    return (*first, f"own-output@{samples}") if mode == UNTOOLED else first


def metrics_of_rated(samples: int, *, weighted: bool) -> tuple[str, ...]:
    """Return the metrics that the ratings of K samples per problem can give.

    They are rm@1, rm@2, rm@4 up to rm@K, and the vote of the best rated if not all samples vote.

    Args:
        samples: K.
        weighted: whether all ratings are weights, from 0 on.
    """
    powers = {2**power for power in range(samples.bit_length())} | {samples}
    votes = {"rm-weighted": weighted, "rm-vote": samples > VOTING}
    return (
        *(f"rm@{k}" for k in sorted(powers)),
        *(f"{name}@{samples}" for name, is_given in votes.items() if is_given and samples > 1),
    )
