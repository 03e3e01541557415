"""Indexes of the records: what commands that list them show of each file, read once.

An index is made again wherever a file is new or has changed, and no number of a verdict is ever
taken from it: what checks, judges or draws reads the records themselves.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from core.records.files import write_atomic
from core.records.places import record_files, root
from core.records.record import read_record
from eval.errors import DamagedFile

T = TypeVar("T")  # what is shown of a record: a value of JSON


class Index(Generic[T]):
    """An index, read when it is opened; when it is closed, it is written if it has changed.

    It lies beside the runs of this machine; where it cannot be written it is made each time.

    Args:
        file: Its name in runs/.
        make: Reads from a record's file what is shown of it.
    """

    def __init__(self, file: str, make: Callable[[Path], T]):
        self._path, self._make = root() / "runs" / file, make

    def __enter__(self) -> Self:
        self._lines = read(self._path)
        self._changed = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._changed:
            lines = {name: line for name, line in self._lines.items() if (root() / name).exists()}
            with suppress(OSError):
                write_atomic(self._path, json.dumps(lines) + "\n")

    def shown(self, slug: str | None = None) -> Iterator[T]:
        """Yield what is shown of every record of a paper, or of all.

        Raises:
            DamagedFile: a record is not what was written.
        """
        for path in record_files(slug):
            name, now = path.relative_to(root()).as_posix(), path.stat()
            state = [now.st_size, now.st_mtime_ns]
            if name not in self._lines or self._lines[name][:-1] != state:
                self._lines[name] = [*state, self._make(path)]
                self._changed = True
            yield self._lines[name][-1]


def read(path: Path) -> dict[str, list[Any]]:  # Any: JSON of several types
    """Return the lines of an index by the file's name; none if it is absent or damaged."""
    try:
        lines = json.loads(path.read_text(encoding="utf-8")).items()
        return {name: [size, time, shown] for name, (size, time, shown) in lines}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def kinds_and_scales() -> Index[tuple[str, str]]:
    """Return the index of `repro list`: the kind and the scale of each record."""
    return Index("index.json", kind_and_scale)


def kind_and_scale(path: Path) -> tuple[str, str]:
    """Return the kind and the scale of a record.

    Raises:
        DamagedFile: it is no JSON object.
    """
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not a JSON record ({error}); see `repro check`") from error
    return str(record.get("kind")), str(record.get("scale"))


def listed_runs() -> Index[dict[str, Any] | None]:  # Any: fields of several types
    """Return the index of `repro runs`: what it shows of each run, None of another record."""
    return Index("listed.json", listed_run)


def listed_run(path: Path) -> dict[str, Any] | None:  # Any: fields of several types
    """Return what ran, when, where its record lies, what it supersedes, and its scores.

    Raises:
        DamagedFile: the record is not what was written.
    """
    run = read_record(path)
    if run["kind"] != "run":
        return None
    names = ("digest", "paper", "arm", "seed", "scale", "overrides", "created", "supersedes")
    scored = ("benchmark", "mode", "metric", "value", "low", "high", "n")
    return {
        **{name: run[name] for name in names},
        "scores": [{name: row[name] for name in scored} for row in run["scores"]],
        "path": str(path),
        "size": path.stat().st_size,
    }
