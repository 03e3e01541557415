"""Comparison of graders on the same outputs: the strict one, which counts, and two others.

The others are DeepSeekMath's (the paper's), and the rule of the benchmark's own authors.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from eval.grading import Verdict, grade_as_paper, grade_officially
from eval.grading.official import official_accuracy
from eval.grading.paper_extraction import Part
from eval.json_lines import JsonObject
from eval.samples.store import Sample
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import FEW_SHOT, PAL
from eval.sets.problem import Problem
from eval.stats.estimates import Estimate, mean_interval, proportion
from eval.stats.summary import Score, percent_interval, samples_by_problem, score

SINGLE = ("top1", "avg@")  # beginnings of the names of metrics of single samples
PARTS: dict[str, Part] = {FEW_SHOT: "few-shot", PAL: "program"}


@dataclass(frozen=True)
class Judged:
    """A sample with its strict verdict, the paper's verdict and the reference answer."""

    sample: Sample
    paper: Verdict
    answer: str

    @property
    def differ(self) -> bool:
        """Disagreement of the graders; no verdict counts as wrong, as in a score."""
        return (self.sample.correct is True) != (self.paper.correct is True)


def judge_both(
    samples: Sequence[Sample], problems: Iterable[Problem], benchmark: Benchmark, mode: str
) -> list[Judged]:
    """Grade samples by the paper's rules; return both verdicts on each.

    The paper has separate rules for answers to few-shot prompts and for values of programs. If a
    benchmark overrides the grading, the second verdict is a copy of the strict one.
    """
    problems_by_id = {problem.id: problem for problem in problems}
    sample_problems = [problems_by_id[sample.id] for sample in samples]
    outputs = [sample.output for sample in samples]
    part = PARTS.get(mode, "answer")
    if benchmark.grading_overrides:
        verdicts = [Verdict(s.correct, s.extracted, s.rule, s.reason) for s in samples]
    else:
        verdicts = grade_as_paper(
            outputs, sample_problems, listed=benchmark.style == "latex", part=part
        )
    return [
        Judged(sample, verdict, problem.answer)
        for sample, verdict, problem in zip(samples, verdicts, sample_problems, strict=True)
    ]


def paper_scores(
    comparisons: Sequence[Judged], benchmark: Benchmark, metrics: Sequence[str], mode: str
) -> list[Score]:
    """Return the scores by the verdicts of the paper's grader."""
    regraded = [
        replace(j.sample, correct=j.paper.correct, extracted=j.paper.extracted, rule=j.paper.rule)
        for j in comparisons
    ]
    return [
        replace(paper_score, grader="paper")
        for paper_score in score(regraded, benchmark, metrics, mode=mode)
    ]


def official_score(
    samples: Sequence[Sample], problems: Iterable[Problem], benchmark: Benchmark
) -> JsonObject | None:
    """Return the accuracy in percent by the benchmark's official rule, and what it left out.

    It is the mean over problems and their samples. CMATH leaves error replies out (`errors`), and
    problems with nothing else; the value is None if there is nothing else at all. Return None for
    benchmarks without an official rule.
    """
    if not benchmark.official:
        return None
    problems_by_id = {problem.id: problem for problem in problems}
    rows = samples_by_problem(samples, benchmark.name)
    flat = [sample for row in rows for sample in row]
    verdicts = grade_officially(
        [sample.output for sample in flat],
        [problems_by_id[sample.id] for sample in flat],
        benchmark.official,
    )
    k = len(rows[0])
    correct = [[v.correct for v in verdicts[i : i + k]] for i in range(0, len(flat), k)]
    values = [value for row in correct if (value := official_accuracy(row)) is not None]
    errors = sum(row.count(None) for row in correct)
    if not values:
        return {"rule": benchmark.official, "score": None, "interval": None, "errors": errors}
    estimate = official_estimate(values, k)
    return {
        "rule": benchmark.official,
        "score": 100 * estimate.value,
        "interval": [*percent_interval(estimate)],
        "errors": errors,
    }


def official_estimate(values: Sequence[float], samples: int) -> Estimate:
    """Return the mean of the problems' shares of right samples with its 95 % interval."""
    if samples == 1 or len(values) == 1:
        return proportion(round(sum(values)), len(values))
    return mean_interval(values)


def verdict_lines(comparisons: Iterable[Judged]) -> bytes:
    """Return a JSON line for each sample with its fields and the paper's verdict and reason."""
    return b"".join(
        json.dumps(asdict(j.sample) | by_paper(j.paper)).encode() + b"\n" for j in comparisons
    )


def by_paper(verdict: Verdict) -> JsonObject:
    """Return the paper's verdict and reason as columns for a sample's row."""
    return {"paper_correct": verdict.correct, "paper_reason": verdict.reason}


def differences(comparisons: Iterable[Judged]) -> list[JsonObject]:
    """Return a row with both verdicts for each sample on which the graders disagree."""
    return [
        {
            "id": j.sample.id,
            "sample": j.sample.sample,
            "answer": j.answer,
            "strict": {k: getattr(j.sample, k) for k in ("correct", "extracted", "rule", "reason")},
            "paper": asdict(j.paper),
        }
        for j in comparisons
        if j.differ
    ]


def counts(comparisons: Sequence[Judged]) -> dict[str, int | None]:
    """Count samples, truncated outputs, absent answers, timeouts and grading errors.

    `truncated` is None unless `Sample.truncated` is known of every sample.
    """
    samples = [j.sample for j in comparisons]
    truncations = [s.truncated for s in samples if s.truncated is not None]
    return {
        "samples": len(samples),
        "truncated": sum(truncations) if len(truncations) == len(samples) else None,
        "unanswered": sum(s.extracted is None for s in samples),
        "timeouts": sum(s.rule == "timeout" for s in samples),
        "errors": sum(s.rule == "error" for s in samples),
        "paper_timeouts": sum(j.paper.correct is None for j in comparisons),
    }


def beside(
    rows: Iterable[JsonObject],
    comparisons: Sequence[Judged],
    paper: Iterable[Score],
    official: JsonObject | None,
) -> list[JsonObject]:
    """Return score rows with short names of their fields, counts and the other graders' scores.

    The official score, of single samples, stands in the rows of such metrics alone.
    """
    return [
        row
        | {
            "problems": row["n"],
            "score": row["value"],
            "interval": [row["low"], row["high"]],
            "counts": counts(comparisons) | {"executor_errors": row["executor_errors"]},
            "paper": {"score": paper_score.value, "interval": [paper_score.low, paper_score.high]},
            "differ": sum(j.differ for j in comparisons),
        }
        | ({"official": official} if official and row["metric"].startswith(SINGLE) else {})
        for row, paper_score in zip(rows, paper, strict=True)
    ]
