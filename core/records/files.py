"""Files of a run: digests of what they hold, and writes that are whole or absent."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from inspect import isfunction
from pathlib import Path
from typing import cast

from eval.errors import BadValue, ReproError

ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where a function lies in the memory of a process
NO_SPACE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
# The same from libraries in Rust (safetensors, tokenizers), and of a file that torch cannot finish.
NOT_WRITTEN = re.compile(
    rf"\(os error ({'|'.join(map(str, NO_SPACE))})\)"
    r"|PytorchStreamWriter failed writing file|inline_container.*unexpected pos"
)
SHORT = 16  # hex digits of a digest in a file name: 64 bits


class DiskFull(ReproError, OSError):
    """A write that found no space."""

    exit_code = 1


def canonical(value: object) -> object:
    """A value as JSON that does not depend on how it was typed: 10 and 10.0 agree.

    Raises:
        BadValue: a number is not finite, or a value has no JSON form.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise BadValue(f"{value}: a record holds finite numbers only")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, list | tuple):
        return [canonical(item) for item in cast(Sequence[object], value)]
    if isinstance(value, Mapping):
        rows = cast(Mapping[object, object], value)
        return {str(key): canonical(item) for key, item in rows.items()}
    if is_dataclass(value) or callable(value):
        return as_text(value)
    if isinstance(value, Path):
        return str(value)
    raise BadValue(f"{value!r}: a {type(value).__name__} cannot be stored in a record")


def as_text(value: object) -> str:
    """A value in a line, the same in every process: a function by its module and name."""
    if isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return ADDRESS.sub("", repr(value))


def line_of(value: object) -> str:
    """JSON on one line, keys sorted."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical_text(value: object) -> str:
    """Canonical JSON on one line, keys sorted."""
    return line_of(canonical(value))


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def has_digest(value: object, digest: object) -> bool:
    """Whether what was read from JSON has a digest; it is nearly always canonical as it is."""
    read = hashlib.sha256(line_of(value).encode()).hexdigest()
    return digest == read or digest == digest_of(value)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_files(folder: Path) -> dict[str, str]:
    """The digest of every file below a folder, by its relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in paths}


def write_atomic(path: Path, content: str | bytes) -> Path:
    """Write a file in one step: a kill leaves the old content or the new one.

    Raises:
        DiskFull: there was no space; the old content is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with no_space(path):
        try:
            with beside.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    return path


def copy_atomic(source: Path, target: Path) -> Path:
    """Copy a file in one step.

    Raises:
        DiskFull: there was no space.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    with no_space(target):
        try:
            shutil.copyfile(source, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    return target


@contextmanager
def no_space(what: object) -> Generator[None]:
    """Turn "no space left", "file too large" and "quota exceeded" into one clear error."""
    try:
        yield
    except Exception as error:  # also what safetensors and torch make of it
        if isinstance(error, DiskFull) or (reason := full(error)) is None:
            raise
        raise DiskFull(
            f"no space to write {getattr(error, 'filename', None) or what} ({reason}): free some "
            "and give the same command again; what was finished is kept"
        ) from error


def full(error: Exception) -> str | None:
    """How an error says that there is no space; None if it says something else."""
    if isinstance(error, OSError):
        return error.strerror if error.errno in NO_SPACE else None
    found = NOT_WRITTEN.search(str(error))
    return found and os.strerror(int(found[1] or errno.ENOSPC))
