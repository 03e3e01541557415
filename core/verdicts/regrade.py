"""Compares the scores of records with their stored samples, which are graded again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean

from core.records.agreement import agree
from core.records.answers import seal_of
from core.records.files import file_digest
from core.records.form_splits import form_problems
from core.records.pair_files import damaged_pairs
from core.records.passed import Passed, code_digest
from core.records.run_samples import (
    SampleSet,
    file_problem,
    read_run_samples,
    sample_files_of,
    sample_set,
)
from core.records.sample_files import held_out_digests, score_rows
from core.records.schema import AtKCurves, RunRecord, ScoreRow, place_of
from core.settings.canonical import digest_of
from core.settings.run_settings import BENCHMARK, HELD_OUT
from eval.errors import DamagedFile, ReproError
from eval.grading import Verdict, grade_many
from eval.samples.evaluation import score
from eval.samples.parts import score_parts
from eval.samples.store import Grader, Sample, Sealed, regrade
from eval.sets.benchmarks import Benchmark, find_benchmark
from eval.sets.problem import Answers, Problem
from eval.stats.summary import curve as at_k_curves

READER = ("eval.samples",)
GRADER = ("eval.grading", "eval.pocket", "eval.samples", "eval.sets", "eval.stats")
LIBRARIES = ("math-verify", "numpy", "scipy", "sympy")


class Regrader:
    """A cache of stored samples that are read and graded again, once for each digest.

    Args:
        passed: Checks that passed before. A file with the same bytes is not read again.
    """

    def __init__(self, passed: Passed):
        self._passed = passed
        self._damage: dict[tuple[Path, *tuple[str, ...]], list[str]] = {}
        self._measured: dict[str, dict[str, object]] = {}
        self._verdicts: dict[tuple[str, Answers, str], Verdict] = {}
        self._accuracy: dict[str, float] = {}

    def find_damage(self, run: RunRecord) -> Iterator[str]:
        """Yield a line for each of a run's sample files that is missing or not what was written."""
        for path, sets in sample_files_of(run):
            key = (path, *sets.values())
            if key not in self._damage:
                reading = map(file_problem, [path], [sets])  # unless these bytes passed before
                self._damage[key] = self._passed.problems(
                    stored_with(path, sets), filter(None, reading)
                )
            yield from (f"{place_of(run)}: {line}" for line in self._damage[key])
        yield from damaged_pairs(run)

    def problems(self, run: RunRecord) -> Iterator[str]:
        """Yield a line for each score, split or held-out accuracy that the samples do not give."""
        for suite, mode, row in score_rows(run):
            yield from self.differences(run, suite, mode, row)
        yield from form_problems(run)
        for name, digest in held_out_digests(run).items():
            suite, _, step = name.rpartition("/")
            curve_name = f"{BENCHMARK}{suite}" if suite else HELD_OUT
            value = self.accuracy(run, digest)
            curve = {int(at_step): point for at_step, point in run["curves"].get(curve_name, [])}
            recorded = curve.get(int(step))
            if not agree(recorded, value):
                line = f"is {recorded} at step {step}, its samples give {value}"
                yield f"{where(run, curve_name)}: {line}"

    def accuracy(self, run: RunRecord, digest: str) -> float:
        """Return the percentage of right answers in the set of a run with this digest."""
        if digest not in self._accuracy:
            answers = read_run_samples(run, digest)
            self._accuracy[digest] = 100 * mean(sample.correct is True for sample in answers)
        return self._accuracy[digest]

    def grade(self, outputs: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Return the verdict on each output; equal ones of a problem are graded once."""
        keys = [(o, p.reference, p.language) for o, p in zip(outputs, problems, strict=True)]
        if new := [key for key in dict.fromkeys(keys) if key not in self._verdicts]:
            self._verdicts.update(zip(new, grade_many(*zip(*new, strict=True)), strict=True))
        return [self._verdicts[key] for key in keys]

    def differences(
        self, run: RunRecord, suite: str, mode: str, row: ScoreRow | AtKCurves
    ) -> Iterator[str]:
        """Yield a line for each field of a stored score that its samples do not give."""
        question = {"suite": suite, "mode": mode, "k": row.get("k"), "metric": row.get("metric")}
        question |= {"by": sorted(row.get("by", ())), "sealed": "texts" in row}
        key = digest_of(question | {"digest": row["digest"]})
        try:
            if key not in self._measured:
                benchmark = find_benchmark(suite, row.get("draw", 0))
                stored = sample_set(run, row["digest"])
                whole = "texts" not in row
                samples = graded_again(stored, benchmark, mode, self.grade, whole=whole)
                self._measured[key] = measure(samples, benchmark, row)
        except ReproError as error:
            yield f"{where(run, suite)}: {error}"
            return
        recorded: dict[str, object] = {**row}
        for name, value in self._measured[key].items():
            if name in AtKCurves.__optional_keys__ and name not in recorded:
                continue
            if not agree(recorded[name], value):
                yield f"{where(run, suite)}: {name} is {recorded[name]}, its samples give {value}"


def graded_again(
    samples: SampleSet, benchmark: Benchmark, mode: str, grade: Grader, *, whole: bool
) -> list[Sample]:
    """Grade stored samples again and return them with the new verdicts.

    Args:
        samples: a set of stored samples.
        benchmark: whose problems they answer.
        mode: in which they were asked.
        grade: gives the verdicts.
        whole: whether the record says that the set has the texts of the samples.

    Raises:
        DamagedFile: the file is not what was written, or a verdict is not the stored one.
        MissingFile: the file, or the problems of the suite, are missing.
        BadValue: a sample belongs to no problem of the benchmark.
    """
    stored = samples.read()
    if any(isinstance(sample, Sealed) == whole for sample in stored):
        expected = "samples with their texts" if whole else "outcomes without texts"
        raise DamagedFile(
            f"{samples.path}: its record says that {samples.name} holds {expected}, and it does not"
        )
    fresh = regrade(stored, benchmark.load(), mode, grade)
    pairs = zip(stored, fresh, strict=True)
    changed = [old.id for old, new in pairs if old.correct != new.correct]
    if changed:
        raise DamagedFile(
            f"{samples.path}: the grader now judges {len(changed)} answers of {samples.name} "
            f"differently, the first is to {changed[0]}"
        )
    return fresh


def stored_with(path: Path, sets: Mapping[str, str]) -> dict[str, object]:
    """Return digests of all that the check of a file of samples depends on: bytes, sets and code.

    Args:
        path: The file; it may be missing.
        sets: The digests of its sets by name.
    """
    return {
        "file": file_digest(path) if path.is_file() else None,
        "sets": dict(sets),
        "reader": code_digest(READER, ("pyarrow",)),
    }


def graded_with(run: RunRecord) -> dict[str, object]:
    """Return digests of all that regrading a run depends on: record, grader and problems.

    The record's seal covers its scores and the digests of its samples.
    """
    return {
        "graded": seal_of(run),
        "grader": code_digest(GRADER, LIBRARIES),
        "problems": {suite: problems_digest(suite) for suite, _, _ in score_rows(run)},
    }


@cache
def problems_digest(suite: str) -> str:
    """Return a digest of the problems of a suite; empty if they cannot be read.

    Generated problems are not part of it: they come from code that is part of the grader's digest.
    """
    try:
        benchmark = find_benchmark(suite)
        problems = [] if benchmark.is_generated else benchmark.load()
        return digest_of([repr(problem) for problem in problems])
    except ReproError:
        return ""


def where(run: RunRecord, suite: str) -> str:
    """Return where a score stands: the record and the suite."""
    return f"{place_of(run)}, {suite}"


def measure(
    samples: list[Sample], benchmark: Benchmark, row: ScoreRow | AtKCurves
) -> dict[str, object]:
    """Compute the fields of a score from its samples, or the curves at its `k`."""
    if "k" in row:
        return dict(at_k_curves(samples, row["k"]))
    scored = score(samples, benchmark, metrics=(row["metric"],))[0]
    parts = {
        name: score_parts(samples, benchmark, row["metric"], name) for name in row.get("by", {})
    }
    fields: dict[str, object] = {
        "value": scored.value,
        "low": scored.low,
        "high": scored.high,
        "n": scored.n,
    }
    return fields | ({"by": parts} if parts else {})
