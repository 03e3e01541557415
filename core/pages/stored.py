"""Links from a page to the records and samples that it is made of."""

import os
from collections.abc import Iterable
from pathlib import Path

from core.records.answers import Fields
from core.records.places import record_file
from core.records.run_samples import sample_set
from core.records.schema import AnyRecord, Record, RunRecord, place_of
from core.settings.canonical import as_text
from eval.tables.report import File


def files_of(records: Iterable[AnyRecord | Record], folder: Path) -> tuple[File, ...]:
    """Return the files of records with their paths from `folder`."""
    return tuple(
        File(name=place_of(record), path=record_path(record, folder), text=description_of(record))
        for record in records
    )


def description_of(record: Fields) -> str:
    """Describe a record in a few words."""
    match record["kind"]:
        case "run":
            return f"{record['arm']}, seed {record['seed']}"
        case "tuning":
            return f"learning rates of {record['arm']}"
        case "controls":
            return f"fixed interventions on {record['model']['name']}"
        case "claims":
            overrides = " ".join(
                f"{n}={as_text(v)}" for n, v in sorted(record["overrides"].items())
            )
            return f"verdicts with {overrides}" if overrides else "verdicts"
        case kind:
            return kind


def record_path(record: AnyRecord | Record, folder: Path) -> str:
    """Return the relative path from a folder to the file of a record."""
    return path_from(folder, record_file(record["paper"], record["digest"]))


def samples_path(run: RunRecord, digest: str, folder: Path) -> str:
    """Return the path from a folder to the file of a set of samples of a run."""
    return path_from(folder, sample_set(run, digest).path)


def path_from(folder: Path, file: Path) -> str:
    """Return the relative path from a folder to a file, with forward slashes."""
    return Path(os.path.relpath(file, folder)).as_posix()
