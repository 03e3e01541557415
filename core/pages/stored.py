"""The paths that lead from a page to the records and samples that it is made of."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.records.places import record_file, samples_file
from core.records.schema import AnyRecord, Record, place_of
from core.settings.canonical import as_text
from eval.tables.report import File


def files_of(records: Iterable[AnyRecord | Record], folder: Path) -> tuple[File, ...]:
    """The files of records, as a page in the folder links to them."""
    return tuple(
        File(name=place_of(one), path=record_path(one, folder), text=said_of(one))
        for one in records
    )


def said_of(record: Mapping[str, Any]) -> str:
    """What a record tells of, in a few words."""
    match record["kind"]:
        case "run":
            return f"{record['arm']}, seed {record['seed']}"
        case "tuning":
            return f"learning rates of {record['arm']}"
        case "controls":
            return f"fixed interventions on {record['model']['name']}"
        case "claims":
            given = " ".join(f"{n}={as_text(v)}" for n, v in sorted(record["overrides"].items()))
            return f"verdicts with {given}" if given else "verdicts"
        case other:
            return other


def record_path(record: AnyRecord | Record, folder: Path) -> str:
    """The way from a folder to the file of a record."""
    return path_from(folder, record_file(record["paper"], record["digest"]))


def samples_path(digest: str, folder: Path) -> str:
    """The way from a folder to stored samples."""
    return path_from(folder, samples_file(digest))


def path_from(folder: Path, file: Path) -> str:
    """The way from a folder to a file, as a page writes it."""
    return Path(os.path.relpath(file, folder)).as_posix()
