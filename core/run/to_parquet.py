"""Conversion of stored samples from one .jsonl.gz file per set to one Parquet file per run.

`python -m core.run.to_parquet` writes the Parquet files, `... compare` holds every row and every
digest of them against the old files, `... remove` deletes the old files.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from core.records.places import (
    ACCEPTED,
    PARQUET,
    SAMPLES,
    results,
)
from core.records.record import as_lines, read_record
from core.records.run_samples import START, file_problem, sample_files_of
from core.records.schema import RunRecord, runs_of
from eval.samples.parquet import read_set, write_sets
from eval.samples.store import digest_of, read_samples

OLD = ".jsonl.gz"


def old_file(digest: str) -> Path:
    """Return the old file of a set."""
    return results() / SAMPLES / f"{digest}{OLD}"


def runs() -> Iterator[tuple[Path, RunRecord]]:
    """Yield the path and the record of every published run, of earlier ones too."""
    for path in sorted(results().glob("**/*.json")):
        if path.name != ACCEPTED:
            for run in runs_of([read_record(path)]):
                yield path, run


def targets() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield each file to write, once, with the digests of its sets."""
    seen: set[Path] = set()
    for record, run in runs():
        for path, sets in sample_files_of(run):
            place = path if START in sets else record.with_suffix(PARQUET)
            if place not in seen:
                seen.add(place)
                yield place, sets


def convert() -> None:
    """Write the Parquet files; records that are printed over many lines become a line per field."""
    for path, sets in targets():
        write_sets(path, {n: read_samples(old_file(d), d) for n, d in sets.items()})
    for path in sorted(results().glob("**/*.json")):
        if path.name != ACCEPTED:
            record = read_record(path)
            text = as_lines({k: v for k, v in record.items() if k != "digest"})
            if len(text.encode()) < path.stat().st_size:
                path.write_text(text, encoding="utf-8")
            assert read_record(path) == record


def compare() -> None:
    """Hold every row and digest of the Parquet files against the old files."""
    rows = files = 0
    digests: set[str] = set()
    for path, sets in targets():
        assert file_problem(path, sets) == "", file_problem(path, sets)
        for name, digest in sets.items():
            old, new = read_samples(old_file(digest), digest), read_set(path, name, digest)
            assert [type(s) for s in old] == [type(s) for s in new]
            assert old == new
            assert digest_of(new) == digest
            rows += len(new)
            digests.add(digest)
        files += 1
    old_digests = {path.name.removesuffix(OLD) for path in (results() / SAMPLES).glob(f"*{OLD}")}
    assert digests == old_digests, (len(digests), len(old_digests))
    print(f"{files} files, {len(digests)} digests, {rows} rows: equal")


def remove() -> None:
    """Delete the old files."""
    for path in (results() / SAMPLES).glob(f"*{OLD}"):
        path.unlink()


if __name__ == "__main__":
    {"compare": compare, "remove": remove}.get("".join(sys.argv[1:]), convert)()
