"""Compares the stored answers of two arms to the same problems, for the win rates of claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from statistics import fmean
from typing import cast

from core.claims import Claim, Comparison, MissingMeasure, Runs, Side
from core.claims.measures import missing, record_of
from core.claims.win_rates import WINS, WinRate
from core.records.run_samples import read_run_samples
from core.records.schema import RunRecord, ScoreRow
from eval.errors import BadValue
from eval.judging.judges import JUDGES
from eval.samples.sealing import text_of
from eval.samples.store import Sample
from eval.samples.transcripts import graded_part
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Problem


def with_wins(claim: Claim, cases: Mapping[int, Runs]) -> Mapping[int, Runs]:
    """Return the records of each seed with the chances to win that the sides of a claim read.

    Args:
        claim: the claim.
        cases: the records of each seed by arm.

    Raises:
        MissingMeasure: an arm has no such score, the judge cannot compare its answers, or the arms
            answer other problems.
        MissingFile, DamagedFile: see `core.records.run_samples.read_run_samples`.
    """
    tests = [t for t in (claim.test, *claim.act_comparisons) if isinstance(t, Comparison)]
    sides = [side for test in tests for part in (test.left, test.right) for side in wins_in(part)]
    return {seed: compared(runs, sides) for seed, runs in cases.items()} if sides else cases


def wins_in(side: Side) -> Iterator[WinRate]:
    """Yield the win rates that a side is, or is computed from."""
    if isinstance(side, WinRate):
        yield side
    else:
        for part in side.parts:
            yield from wins_in(part)


def compared(runs: Runs, sides: Sequence[WinRate]) -> Runs:
    """Return the records of one seed with the chances to win of each problem."""
    wins = {
        str(side): {name: chances_of(runs, side, name) for name in side.score.benchmarks}
        for side in sides
    }
    return {arm: {**run, WINS: wins} for arm, run in runs.items()}


def chances_of(runs: Runs, side: WinRate, name: str) -> list[float]:
    """Return the chance to win of each problem of a benchmark, in the order of their names.

    It is the mean over the answers to a problem: the first of one arm is compared with the first of
    the other, and so on.
    """
    (row, first), (_, second) = (answers_of(runs, side, arm, name) for arm in (side.arm, side.over))
    if [(s.id, s.sample) for s in first] != [(s.id, s.sample) for s in second]:
        raise MissingMeasure(f"{side}: the arms answer other problems of {name}")
    problems = {p.id: p for p in find_benchmark(row["benchmark"], row.get("draw", 0)).load()}
    try:
        columns = judged_columns([problems[s.id] for s in first], side.judge)
        texts = {"first": texts_of(first, row["mode"]), "second": texts_of(second, row["mode"])}
    except BadValue as error:
        raise MissingMeasure(f"{side}: {error.args[0]}") from None
    chances = zip(first, JUDGES[side.judge](**columns, **texts), strict=True)
    by_problem = groupby(chances, key=lambda pair: pair[0].id)
    return [fmean(chance for _, chance in pairs) for _, pairs in by_problem]


def answers_of(runs: Runs, side: WinRate, arm: str, name: str) -> tuple[ScoreRow, Sequence[Sample]]:
    """Return the score of an arm that a win rate compares, and its answers in order."""
    record = record_of(runs, arm)
    row = cast(ScoreRow | None, side.score.rows(record, arm).get(name))
    if row is None:
        raise missing(record, arm, f"{side.score}")
    samples = read_run_samples(cast(RunRecord, record), row["digest"])
    return row, sorted(samples, key=lambda sample: (sample.id, sample.sample))


def texts_of(samples: Sequence[Sample], mode: str) -> list[str]:
    """Return the texts of samples that are graded."""
    return [graded_part(text_of(sample), mode) for sample in samples]


def judged_columns(problems: Sequence[Problem], judge: str) -> dict[str, Sequence[object]]:
    """Return the columns of problems that judges read, a row for each of them.

    Raises:
        BadValue: the judge reads right answers, and a problem has several.
    """
    references = [problem.reference for problem in problems]
    reads_answers = "answer" in getattr(JUDGES[judge], "required_columns", ())
    if reads_answers and any(len(r.texts) > 1 or r.counts == "first" for r in references):
        raise BadValue(f"the judge {judge} knows one right answer, and a problem has several")
    return {
        "prompts": [problem.question for problem in problems],
        "answer": [reference.texts[0] for reference in references],
        "answers": [asdict(reference) for reference in references],
        "language": [problem.language for problem in problems],
        "solution": [problem.solution for problem in problems],
    }
