"""The scores of records held against their stored samples, which are graded again."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from core.run.files import digest_of
from core.run.places import results
from core.run.records.passed import code_digest
from core.run.records.schema import AtKCurves, RunRecord, ScoreRow
from eval.errors import DamagedFile, ReproError
from eval.samples.evaluation import score
from eval.samples.parts import score_parts
from eval.samples.store import Sample, read_content, read_samples, regrade
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import curve

EXACT = 1e-9
GRADER = ("eval.grading", "eval.pocket", "eval.samples", "eval.sets", "eval.stats")
LIBRARIES = ("math-verify", "numpy", "scipy", "sympy")


class Regrader:
    """Stored samples, read and graded again; those of one digest once, whosever they are."""

    def __init__(self):
        self._damage: dict[Path, str] = {}
        self._measured: dict[str, dict[str, Any]] = {}

    def damaged(self, run: RunRecord) -> Iterator[str]:
        """Files of samples of a run that are missing, or not what was written."""
        for suite, _, digest in files_of(run):
            path = file_of(run, digest)
            if path not in self._damage:
                self._damage[path] = damage(path, digest)
            if self._damage[path]:
                yield f"{where(run, suite)}: {self._damage[path]}"

    def problems(self, run: RunRecord) -> Iterator[str]:
        """Scores of a run that its stored samples do not give."""
        for row in (*run["start_scores"], *run["scores"]):
            yield from self.differences(run, row["benchmark"], row["mode"], row)
        for suite, change in run["sampling"].items():
            for row in (change["before"], change["after"]):
                yield from self.differences(run, suite, "cot", row)

    def differences(
        self, run: RunRecord, suite: str, mode: str, row: ScoreRow | AtKCurves
    ) -> Iterator[str]:
        """What a stored row says and its samples do not."""
        asked = {"suite": suite, "mode": mode, "k": row.get("k"), "metric": row.get("metric")}
        asked["by"] = sorted(row.get("by", ()))
        key = digest_of(asked | {"digest": row["digest"]})
        try:
            if key not in self._measured:
                samples = graded_again(file_of(run, row["digest"]), row["digest"], suite, mode)
                self._measured[key] = measure(samples, suite, row)
        except ReproError as error:
            yield f"{where(run, suite)}: {error}"
            return
        for name, value in self._measured[key].items():
            if not close(row[name], value):
                said = f"{name} is {row[name]}, its samples give {value}"
                yield f"{where(run, suite)}: {said}"


def file_of(run: RunRecord, digest: str) -> Path:
    """Where the samples of a digest lie beside a run's record."""
    return results() / run["paper"] / "samples" / f"{digest}.jsonl.gz"


def damage(path: Path, digest: str) -> str:
    """What is wrong with a file of samples; empty if it is what was written."""
    try:
        read_content(path, digest)
    except ReproError as error:
        return str(error)
    return ""


def graded_again(path: Path, digest: str, suite: str, mode: str) -> list[Sample]:
    """The samples of a file with fresh verdicts.

    Raises:
        DamagedFile: the file is not what was written, or a verdict is not the stored one.
        MissingFile: it is not there, or the suite's problems are not.
    """
    stored = read_samples(path, digest)
    fresh = regrade(stored, find_benchmark(suite).load(), mode)
    pairs = zip(stored, fresh, strict=True)
    changed = [old.id for old, new in pairs if old.correct != new.correct]
    if changed:
        raise DamagedFile(
            f"{path}: the grader now judges {len(changed)} answers otherwise, the first is to "
            f"{changed[0]}"
        )
    return fresh


def graded_with(run: RunRecord) -> dict[str, object]:
    """All that says whether a run's scores are right: itself, the grader and the problems.

    The record's digest covers its scores and the digests of its samples.
    """
    return {
        "graded": run["digest"],
        "grader": code_digest(GRADER, LIBRARIES),
        "problems": {suite: problems_digest(suite) for suite, _, _ in files_of(run)},
    }


@cache
def problems_digest(suite: str) -> str:
    """A digest of the problems of a suite; empty where they cannot be read, which grading says."""
    try:
        return digest_of([repr(problem) for problem in find_benchmark(suite).load()])
    except ReproError:
        return ""


def files_of(run: RunRecord) -> list[tuple[str, str, str]]:
    """Suite, mode and digest of all samples that a run was scored from."""
    rows = [(r["benchmark"], r["mode"], r["digest"]) for r in run["start_scores"] + run["scores"]]
    for suite, change in run["sampling"].items():
        rows += [(suite, "cot", row["digest"]) for row in (change["before"], change["after"])]
    return list(dict.fromkeys(rows))


def where(run: RunRecord, suite: str) -> str:
    """The place of a row."""
    return f"{run['paper']}/{run['digest']}.json, {suite}"


def measure(samples: list[Sample], suite: str, row: ScoreRow | AtKCurves) -> dict[str, Any]:
    """What a row holds, from the samples: a score, or the curves at its `k`."""
    if "k" in row:
        return dict(curve(samples, row["k"]))
    found = score(samples, find_benchmark(suite), metrics=(row["metric"],))[0]
    parts = {
        name: score_parts(samples, find_benchmark(suite), row["metric"], name)
        for name in row.get("by", {})
    }
    whole = {"value": found.value, "low": found.low, "high": found.high, "n": found.n}
    return whole | ({"by": parts} if parts else {})


def close(one: Any, other: Any) -> bool:  # Any: JSON of several types
    """Whether two stored values agree up to rounding of the last digits."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= EXACT * max(1.0, abs(other))
    if isinstance(one, dict) and isinstance(other, dict):
        here, there = cast(dict[str, Any], one), cast(dict[str, Any], other)
        return here.keys() == there.keys() and all(close(here[n], there[n]) for n in here)
    if isinstance(one, list) and isinstance(other, list):
        here, there = cast(list[Any], one), cast(list[Any], other)
        return len(here) == len(there) and all(map(close, here, there))
    return one == other
