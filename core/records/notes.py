"""Notes of a run: JSON files that hold the digest of their content, checked on reading."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from core.records.files import folder_files, write_atomic
from core.settings.canonical import canonical, digest_of, has_digest
from eval.errors import DamagedFile
from eval.json_lines import JsonObject, distinct_fields

DIGEST = "digest of this note"


def write_note(path: Path, content: Mapping[str, object]) -> None:
    """Write a note in one step, with the digest of its content."""
    note = cast(dict[str, object], canonical(content))
    sealed = {**note, DIGEST: digest_of(note)}
    write_atomic(path, json.dumps(sealed, ensure_ascii=False, indent=1) + "\n")


def read_note(path: Path, remedy: str) -> JsonObject:
    """Return the content of a note.

    Raises:
        DamagedFile: the content does not have the digest that is written in the note.
    """
    try:
        text = path.read_text(encoding="utf-8")
        note = dict(json.loads(text, object_pairs_hook=distinct_fields))
        digest = note.pop(DIGEST)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not a note with its digest ({error}); {remedy}") from error
    if not has_digest(note, digest):
        raise DamagedFile(f"{path} was altered: its content has another digest; {remedy}")
    return note


def check_files(
    folder: Path, written: Mapping[str, str], remedy: str, *, allowed: Callable[[str], bool]
) -> None:
    """Compare the files of a folder with their digests; added files must be `allowed`.

    Raises:
        DamagedFile: a file is missing, was altered, or was added.
    """
    digests = folder_files(folder)
    for name, digest in written.items():
        if digests.get(name) != digest:
            state = "is missing" if name not in digests else "was altered or cut off"
            raise DamagedFile(f"{folder / name} {state}; {remedy}")
    for name in digests.keys() - written.keys():
        if not allowed(name):
            raise DamagedFile(f"{folder / name} was added; move it away, or {remedy}")
