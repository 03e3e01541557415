"""The gate over modules, records, samples, reports and regressions: what is wrong, line by line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from core.paper import Paper
from core.paper.registry import Entry, entries, find_entry
from core.run.pages.claims import claims_files
from core.run.pages.render import ran_at, report_files, report_folder
from core.run.pages.speed import speed_files
from core.run.paper_problems import module_problems
from core.run.places import record_files, reports, results
from core.run.records.accepted import drops
from core.run.records.record import Record, read_record, standard
from eval.errors import DamagedFile, ReproError
from eval.samples.evaluation import score
from eval.samples.store import Sample, read_samples, regrade
from eval.sets.benchmarks import find_benchmark
from eval.stats.summary import curve

EXACT = 1e-9


def check_papers(slugs: Sequence[str] = ()) -> dict[str, list[str]]:
    """Every problem of each paper (without `slugs` of all, of speed and of the table of claims)."""
    chosen = [find_entry(slug) for slug in slugs] or list(entries().values())
    found = {entry.slug: check_paper(entry) for entry in chosen}
    return found if slugs else found | {"speed": check_speed(), "claims": check_claims()}


def check_paper(entry: Entry) -> list[str]:
    """The problems of one paper: its module's, its records', its report's, its regressions."""
    try:
        paper = entry.load()
        found = [f"module: {line}" for line in module_problems(entry, paper)]
    except ReproError as error:
        return [f"module: {error}"]
    records, damaged = whole_records(paper.slug)
    found += damaged
    regrader, runs = Regrader(paper.slug), [r for r in records if r["kind"] == "run"]
    problems = [line for run in runs for line in regrader.problems(run)]
    found += [f"samples: {line}" for line in dict.fromkeys(problems)]
    if not found:  # a report and a comparison say nothing about damaged records
        found += [f"report: {line}" for line in report_problems(paper, standard(records))]
        found += [f"regression: {line}" for line in drops(paper.slug, standard(records))]
    return found


def check_speed() -> list[str]:
    """The problems of the measured speed: its records' and its page's."""
    records, damaged = whole_records("bench")
    if damaged:  # a report says nothing about damaged records
        return damaged
    return [f"report: {line}" for line in stale(reports(), speed_files(records))]


def check_claims() -> list[str]:
    """The problems of the table of claims and of its page."""
    try:
        return [f"report: {line}" for line in stale(reports(), claims_files())]
    except ReproError as error:
        return [f"table: {error}"]


def whole_records(slug: str) -> tuple[list[Record], list[str]]:
    """The records of a folder in the order of their making, and what is wrong with the others."""
    records: list[Record] = []
    damaged: list[str] = []
    for path in record_files(slug):
        try:
            records.append(read_record(path))
        except ReproError as error:
            damaged.append(f"record: {error}")
    return sorted(records, key=lambda record: (record["created"], record["digest"])), damaged


class Regrader:
    """Stored samples, graded again; each file once."""

    def __init__(self, slug: str):
        self.folder = results() / slug / "samples"
        self._known: dict[str, list[Sample]] = {}

    def problems(self, run: Record) -> Iterator[str]:
        """Scores of a run that its stored samples do not give."""
        for row in (*run["start_scores"], *run["scores"]):
            yield from self.differences(run, row, lambda samples, row=row: top1(samples, row))
        for suite, sides in run["sampling"].items():
            for side in ("before", "after"):
                row = {**sides[side], "benchmark": suite}
                yield from self.differences(
                    run, row, lambda samples, row=row: curve(samples, row["k"])
                )

    def differences(
        self,
        run: Record,
        row: dict[str, Any],
        measure: Callable[[list[Sample]], Mapping[str, Any]],
    ) -> Iterator[str]:
        """What a stored row says and its samples do not."""
        where = f"{run['paper']}/{run['digest']}.json, {row['benchmark']}"
        try:
            found = measure(self.samples(row["digest"], row["benchmark"], row.get("mode", "cot")))
        except ReproError as error:
            yield f"{where}: {error}"
            return
        for name, value in found.items():
            if not close(row[name], value):
                yield f"{where}: {name} is {row[name]}, its samples give {value}"

    def samples(self, digest: str, suite: str, mode: str) -> list[Sample]:
        """The samples of a digest with fresh verdicts.

        Raises:
            DamagedFile: the file is not what was written, or a verdict is not the stored one.
            MissingFile: it is not there, or the suite's problems are not.
        """
        if digest not in self._known:
            path = self.folder / f"{digest}.jsonl.gz"
            stored = read_samples(path, digest)
            fresh = regrade(stored, find_benchmark(suite).load(), mode)
            pairs = zip(stored, fresh, strict=True)
            changed = [old.id for old, new in pairs if old.correct != new.correct]
            if changed:
                raise DamagedFile(
                    f"{path}: the grader now judges {len(changed)} answers otherwise, the first is "
                    f"to {changed[0]}"
                )
            self._known[digest] = fresh
        return self._known[digest]


def top1(samples: list[Sample], row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row of scores holds, from the samples."""
    found = score(samples, find_benchmark(row["benchmark"]), metrics=(row["metric"],))[0]
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def report_problems(paper: Paper, records: list[Record]) -> Iterator[str]:
    """Files in reports/ that the records no longer give."""
    for scale in ran_at(records):
        files = report_files(paper, records, scale)
        yield from stale(report_folder(paper.slug, scale), files)


def stale(folder: Path, files: Mapping[str, str | bytes]) -> Iterator[str]:
    """Files of a folder that are not what was rendered now."""
    for name, content in files.items():
        path = folder / name
        written = path.read_bytes() if path.is_file() else None
        expected = content.encode() if isinstance(content, str) else content
        if written != expected:
            state = "is missing" if written is None else "differs from its records"
            yield f"{path} {state}: run `repro report`"


def close(one: Any, other: Any) -> bool:  # Any: JSON of several types
    """Whether two stored values agree up to rounding of the last digits."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= EXACT * max(1.0, abs(other))
    if isinstance(one, list) and isinstance(other, list):
        here, there = cast(list[Any], one), cast(list[Any], other)
        return len(here) == len(there) and all(map(close, here, there))
    return one == other
