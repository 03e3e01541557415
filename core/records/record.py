"""Immutable records: one JSON file each, named by the digest of what it says, checked when read."""

import json
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from core.records.answers import content_of, name_of, said, unchanged
from core.records.fair import fair, is_tuned
from core.records.files import write_atomic
from core.records.places import Shelf, own_results, record_file, record_files
from core.records.schema import KINDS, VERSION, Record, mistakes
from core.settings.canonical import canonical, has_digest
from eval.errors import BadValue, DamagedFile


def new_record(kind: str, **content: object) -> Record:
    """A record of our schema with this moment and this machine's versions."""
    return {
        "kind": kind,
        "schema": VERSION,
        "versions": versions(),
        "supersedes": None,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "timings": {},
        **content,
    }


def versions(*more: str) -> dict[str, str]:
    """Versions of what a number depends on."""
    names = ("accelerate", "datasets", "math-verify", "torch", "transformers", *more)
    found = {"python": platform.python_version()}
    for name, distribution in {**{name: name for name in names}, "repro": "repro-papers"}.items():
        try:
            found[name] = version(distribution)
        except PackageNotFoundError:
            continue
    return found


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
    """Store a record in runs/ under the digest of its answers, once; one of the same is left.

    A run of the same settings that came out differently is superseded, not overwritten.
    """
    named = named_record(record)
    path = record_file(named["paper"], named["digest"])
    if path.exists():
        return read_record(path)
    content = {name: value for name, value in named.items() if name != "digest"}
    write_atomic(own_results() / named["paper"] / path.name, as_lines(content))
    return named


def named_record(record: Record) -> Record:
    """Return the record to store, with its digest: the one that stands if it says the same.

    Raises:
        BadValue: a field is missing or of another type.
    """
    content = cast(Record, canonical(record))
    validate(content)
    previous = predecessors(content)
    if (other := standing(content, previous)) is not None:
        return other
    if previous:
        content["supersedes"] = previous[-1]["digest"]
    content["content"] = content_of(content)
    return {**content, "digest": name_of(content)}


def predecessors(content: Record) -> list[Record]:
    """The records that stand and answer the question of this one."""
    return [r for r in current(read_records(content["paper"])) if same_question(r, content)]


def standing(content: Record, previous: Iterable[Record]) -> Record | None:
    """The record among previous ones that says what this one says, if there is one."""
    return next((other for other in previous if unchanged(other, content)), None)


def as_lines(content: Record) -> str:
    """The text of a record: a line for each field."""
    how: dict[str, Any] = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")}
    fields = [f"{json.dumps(name)}: {json.dumps(content[name], **how)}" for name in sorted(content)]
    return "{\n " + ",\n ".join(fields) + "\n}\n"


def read_record(path: Path) -> Record:
    """A record, with its digest, after checking both; a file that has not changed is read once.

    Raises:
        DamagedFile: it is not JSON, lacks a field, or says something else than its name promises.
    """
    file = path.stat()
    return {**_read(path, file.st_ino, file.st_size, file.st_mtime_ns)}


@lru_cache(maxsize=2048)
def _read(path: Path, *_state: int) -> Record:  # the state tells a file from what it was
    remedy = "restore it (git checkout), or delete it and run again"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
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
    digest = name_of(content)
    sealed = content["schema"] == 1 or has_digest(said(content), content.get("content"))
    if digest != path.stem or not sealed:
        raise DamagedFile(f"{path}: its content has the digest {digest}: altered; {remedy}")
    return {**content, "digest": digest}


def read_records(slug: str | None = None, shelf: Shelf = Shelf.HERE) -> list[Record]:
    """Return the records of a shelf, of one paper or of all, in the order of their making."""
    found = [read_record(path) for path in record_files(slug, shelf)]
    return sorted(found, key=lambda record: (record.get("created", ""), record["digest"]))


def current(records: Iterable[Record]) -> list[Record]:
    """The records that no other one supersedes."""
    kept = list(records)
    gone = {record.get("supersedes") for record in kept}
    return [record for record in kept if record["digest"] not in gone]


def standard(records: Iterable[Record]) -> list[Record]:
    """What tables and reports are made of: the `latest`, of each arm at one learning rate."""
    return fair(latest(records))


def latest(records: Iterable[Record]) -> list[Record]:
    """The newest record of each kind, arm, scale and seed, at its own learning rate and the best.

    Runs with command-line overrides are left out; of claims, those over most seeds are taken.
    """
    chosen: dict[tuple[object, ...], Record] = {}
    for record in current(records):
        if record.get("overrides"):
            continue
        named = (record.get(name) for name in ("kind", "paper", "scale", "arm", "seed"))
        key = (*named, is_tuned(record))
        kept = chosen.get(key)
        if kept is None or len(record.get("seeds", ())) >= len(kept.get("seeds", ())):
            chosen[key] = record
    return list(chosen.values())


def machine() -> str:
    """Name the machine in a few words; a circumstance, not a result."""
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
)


def same_question(one: Record, other: Record) -> bool:
    """Whether two records answer the same question: same settings, model, data and seed."""
    return all(canonical(one.get(name)) == canonical(other.get(name)) for name in IDENTITY)
