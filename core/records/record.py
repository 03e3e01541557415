"""Immutable records: JSON files named by the digest of their answers, checked on reading."""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from stat import S_ISREG
from typing import cast

from core.records.answers import content_of, is_unchanged, name_of, named, said
from core.records.fair import fair, is_tuned
from core.records.files import write_atomic
from core.records.mistakes import mistakes
from core.records.places import Shelf, own_results, record_file, record_files
from core.records.record_text import parse_record, record_text
from core.records.schema import KINDS, VERSION, Record
from core.settings.canonical import SHORT, canonical, has_digest
from eval.errors import BadValue, DamagedFile


def new_record(kind: str, **content: object) -> Record:
    """Return a record of this schema with the current time and this machine's versions."""
    return {
        "kind": kind,
        "schema": VERSION,
        "versions": versions(),
        "supersedes": None,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "timings": {},
        **content,
    }


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of Python, repro and the libraries; absent ones are left out."""
    names = ("accelerate", "datasets", "math-verify", "torch", "transformers", *libraries)
    distributions = {**{name: name for name in names}, "repro": "repro-papers"}
    found = {name: installed_version(of) for name, of in distributions.items()}
    installed = {name: version for name, version in found.items() if version is not None}
    return {"python": platform.python_version(), **installed}


@cache
def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def validate(record: Record, where: object = "record") -> None:
    """Check that a record has its kind's fields with their types.

    Raises:
        BadValue: the first field that is missing or of another type, or a version of later code.
    """
    kind = str(record.get("kind"))
    if kind not in KINDS:
        return  # a kind of another room, or of another distribution
    for mistake in mistakes({"digest": "", **record}, KINDS[kind]):
        raise BadValue(f"{where}, of kind {kind!r}: {mistake}")
    if record["schema"] > VERSION:
        raise BadValue(
            f"{where}: written with version {record['schema']} of the schema, this code knows "
            f"{VERSION}: update repro"
        )


def write_record(record: Record) -> Record:
    """Store a record in runs/results/ under its digest, unless the same record exists; return it.

    A record of the same settings with other answers is superseded, not overwritten.

    Raises:
        BadValue: a field is missing or of another type.
        DamagedFile: the stored record is not what was written.
    """
    stored = named_record(record)
    path = record_file(stored["paper"], stored["digest"])
    if path.exists():
        return read_record(path)
    content = {name: value for name, value in stored.items() if name != "digest"}
    write_atomic(own_results() / stored["paper"] / path.name, record_text(content))
    return stored


def named_record(record: Record) -> Record:
    """Return the record to store, with its digest: a current one with the same answers if any.

    Raises:
        BadValue: a field is missing or of another type.
    """
    content = cast(Record, canonical(record))
    validate(content)
    previous = predecessors(content)
    if (existing := find_same_answers(content, previous)) is not None:
        return existing
    if previous:
        content["supersedes"] = previous[-1]["digest"]
    content["content"] = content_of(content)
    return {**content, "digest": name_of(content)}


def predecessors(content: Record) -> list[Record]:
    """Return the current records that answer the same question as this one."""
    return [r for r in current(read_records(content["paper"])) if same_question(r, content)]


def find_same_answers(content: Record, previous: Iterable[Record]) -> Record | None:
    """Return the first previous record that this one leaves unchanged, or None."""
    return next((candidate for candidate in previous if is_unchanged(candidate, content)), None)


def read_record(path: Path) -> Record:
    """Return a record with its digest after checking both; cached while the file is unchanged.

    Raises:
        DamagedFile: the path is a folder, a broken link or the like, or the file is not JSON,
            lacks a field, or has content of another digest.
        FileNotFoundError: there is nothing at the path.
    """
    try:
        file = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise DamagedFile(f"{path}: a broken link, expected a record; delete it") from None
        raise
    if not S_ISREG(file.st_mode):
        raise DamagedFile(f"{path}: no regular file, expected a record; delete it")
    return {**_read(path, file.st_ino, file.st_size, file.st_mtime_ns)}


@lru_cache(maxsize=8192)
def _read(path: Path, *_state: int) -> Record:  # the state tells a file from what it was
    remedy = "restore it (git checkout), or delete it and run again"
    try:
        record = parse_record(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path}: not a JSON record ({error}); {remedy}") from error
    if not isinstance(record, dict):
        raise DamagedFile(f"{path}: a JSON object was expected; {remedy}")
    content = cast(Record, record)
    try:
        validate(content, path)
    except BadValue as error:
        raise DamagedFile(f"{error.args[0]}; {remedy}") from error
    is_named = has_digest(named(content), path.stem, SHORT)
    is_sealed = content["schema"] == 1 or has_digest(said(content), content.get("content"))
    if not (is_named and is_sealed):
        raise DamagedFile(
            f"{path}: its content has the digest {name_of(content)}: altered; {remedy}"
        )
    return {**content, "digest": path.stem}


def read_records(slug: str | None = None, shelf: Shelf = Shelf.HERE) -> list[Record]:
    """Return the records of a shelf, of one paper or of all, oldest first.

    The list is empty if there are none.

    Raises:
        DamagedFile: a record is not what was written.
    """
    records = [read_record(path) for path in record_files(slug, shelf)]
    return sorted(records, key=lambda record: (record.get("created", ""), record["digest"]))


def current(records: Iterable[Record]) -> list[Record]:
    """Return the records that no other record supersedes."""
    all_records = list(records)
    superseded = {record.get("supersedes") for record in all_records}
    return [record for record in all_records if record["digest"] not in superseded]


def standard(records: Iterable[Record]) -> list[Record]:
    """Return the records of tables and reports: `latest`, each arm at one learning rate."""
    return fair(latest(records))


def latest(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of each kind, paper, scale, arm and seed.

    Runs at a learning rate that trials chose stand beside those at the arm's own. Runs with
    command-line overrides are left out. Of claims, the record over the most seeds is taken.
    """
    newest: dict[tuple[object, ...], Record] = {}
    for record in current(records):
        if record.get("overrides"):
            continue
        identity = (record.get(name) for name in ("kind", "paper", "scale", "arm", "seed"))
        key = (*identity, is_tuned(record))
        previous = newest.get(key)
        if previous is None or len(record.get("seeds", ())) >= len(previous.get("seeds", ())):
            newest[key] = record
    return list(newest.values())


def machine() -> str:
    """Return the processor architecture and the number of CPUs as text."""
    return f"{platform.machine()}, {os.cpu_count()} CPUs"


IDENTITY = (
    "kind",
    "paper",
    "scale",
    "arm",
    "seed",
    "seeds",
    "config",
    "overrides",
    "model",
    "data",
    "kernels",  # of a profile, whose seeds start from other weights on another processor
)


def same_question(first: Record, second: Record) -> bool:
    """Return whether two records have the same settings, model, data and seeds."""
    return all(canonical(first.get(name)) == canonical(second.get(name)) for name in IDENTITY)
