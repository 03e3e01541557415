"""Digests of files and folders, and writes that leave a whole file or none."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from eval.errors import ReproError

NO_SPACE = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
# The same from libraries in Rust (safetensors, tokenizers), and of a file that torch cannot finish.
NOT_WRITTEN = re.compile(
    rf"\(os error ({'|'.join(map(str, NO_SPACE))})\)"
    r"|PytorchStreamWriter failed writing file|inline_container.*unexpected pos"
)


class DiskFull(ReproError, OSError):
    """A write that failed because the disk, the quota or the file size was exhausted."""

    exit_code = 1


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, which are read once while its state is the same."""
    file = path.stat()
    return _digest_of_state(path.absolute(), file.st_ino, file.st_size, file.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest_of_state(path: Path, *_state: int) -> str:
    return file_digest(path)


def folder_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its relative path."""
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
def no_space(target: object) -> Generator[None]:
    """Raise `DiskFull` in place of errors that mean no space left.

    These are "no space left", "file too large" and "quota exceeded".

    Raises:
        DiskFull: the block raised such an error.
    """
    try:
        yield
    except Exception as error:  # also what safetensors and torch make of it
        if isinstance(error, DiskFull) or (reason := no_space_reason(error)) is None:
            raise
        raise DiskFull(
            f"no space to write {getattr(error, 'filename', None) or target} ({reason}): free some "
            "and give the same command again; what was finished is kept"
        ) from error


def no_space_reason(error: Exception) -> str | None:
    """Return the reason if an error means that there is no space, else None."""
    if isinstance(error, OSError):
        return error.strerror if error.errno in NO_SPACE else None
    match = NOT_WRITTEN.search(str(error))
    return match and os.strerror(int(match[1] or errno.ENOSPC))
