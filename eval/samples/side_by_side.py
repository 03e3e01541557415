"""Both graders' verdicts on the same outputs: strict, which counts, and the paper's beside it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eval.grading import Verdict, grade_as_paper
from eval.grading.paper_extraction import Part
from eval.samples.store import Sample
from eval.sets.benchmarks import Benchmark
from eval.sets.fewshot import FEW_SHOT, PAL
from eval.sets.problem import Problem
from eval.stats.summary import Score, score

PARTS: dict[str, Part] = {FEW_SHOT: "few-shot", PAL: "program"}


@dataclass(frozen=True)
class Judged:
    """A sample with its strict verdict, the paper's verdict and the reference answer."""

    sample: Sample
    paper: Verdict
    answer: str

    @property
    def differ(self) -> bool:
        """Do the graders disagree? No verdict counts as wrong, as in a score."""
        return (self.sample.correct is True) != (self.paper.correct is True)


def judge_both(
    samples: Sequence[Sample], problems: Iterable[Problem], benchmark: Benchmark, mode: str
) -> list[Judged]:
    """The paper's verdicts beside the strict ones that the samples carry.

    The paper reads an answer to a few-shot prompt by rules of its own, and of a program its value.
    A benchmark that judges in its own way has no second verdict.
    """
    known = {problem.id: problem for problem in problems}
    asked = [known[sample.id] for sample in samples]
    outputs = [sample.output for sample in samples]
    part = PARTS.get(mode, "answer")
    if benchmark.grading_overrides:
        verdicts = [Verdict(s.correct, s.extracted, s.rule, s.reason) for s in samples]
    else:
        verdicts = grade_as_paper(outputs, asked, listed=benchmark.style == "latex", part=part)
    return [
        Judged(sample, verdict, problem.answer)
        for sample, verdict, problem in zip(samples, verdicts, asked, strict=True)
    ]


def paper_scores(
    judged: Sequence[Judged], benchmark: Benchmark, metrics: Sequence[str], mode: str
) -> list[Score]:
    """The scores that the paper's grader gives."""
    regraded = [
        replace(j.sample, correct=j.paper.correct, extracted=j.paper.extracted, rule=j.paper.rule)
        for j in judged
    ]
    return [replace(one, grader="paper") for one in score(regraded, benchmark, metrics, mode=mode)]


def verdict_lines(judged: Iterable[Judged]) -> bytes:
    """One JSON line for each sample: what was read as its answer, both verdicts, and why."""
    return b"".join(
        json.dumps(asdict(j.sample) | by_paper(j.paper)).encode() + b"\n" for j in judged
    )


def by_paper(verdict: Verdict) -> dict[str, Any]:
    """The paper's verdict as columns beside the strict one."""
    return {"paper_correct": verdict.correct, "paper_reason": verdict.reason}


def differences(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """The samples on which the graders disagree, with what each read and decided."""
    return [
        {
            "id": j.sample.id,
            "sample": j.sample.sample,
            "answer": j.answer,
            "strict": {k: getattr(j.sample, k) for k in ("correct", "extracted", "rule", "reason")},
            "paper": asdict(j.paper),
        }
        for j in judged
        if j.differ
    ]


def counts(judged: Sequence[Judged]) -> dict[str, int | None]:
    """How many samples there are, were cut, have no answer, passed the deadline, broke a parser.

    How many were cut is not known (None) unless every sample says whether it was.
    """
    samples = [j.sample for j in judged]
    cut = [s.truncated for s in samples if s.truncated is not None]
    return {
        "samples": len(samples),
        "truncated": sum(cut) if len(cut) == len(samples) else None,
        "unanswered": sum(s.extracted is None for s in samples),
        "timeouts": sum(s.rule == "timeout" for s in samples),
        "errors": sum(s.rule == "error" for s in samples),
        "paper_timeouts": sum(j.paper.correct is None for j in judged),
    }


def beside(
    rows: Iterable[dict[str, Any]], judged: Sequence[Judged], paper: Iterable[Score]
) -> list[dict[str, Any]]:
    """Score rows with the short names of their number, the counts, and the paper's score."""
    return [
        row
        | {
            "problems": row["n"],
            "score": row["value"],
            "interval": [row["low"], row["high"]],
            "counts": counts(judged) | {"executor_errors": row["executor_errors"]},
            "paper": {"score": other.value, "interval": [other.low, other.high]},
            "differ": sum(j.differ for j in judged),
        }
        for row, other in zip(rows, paper, strict=True)
    ]
