"""Indexes of the records: the fields that listing commands show, cached for each file.

An entry is made again if its file is new or has changed. Commands that check, judge or draw read
the records themselves, so that no number of a verdict comes from an index.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypedDict, TypeVar

from core.records.files import write_atomic
from core.records.places import record_files, root
from core.records.record import read_record
from core.records.schema import ScoreRow
from eval.errors import DamagedFile

T = TypeVar("T")  # what is shown of a record: a value of JSON


class ListedScore(TypedDict):
    """A score of a run as `repro runs` shows it."""

    benchmark: str
    mode: str
    metric: str
    value: float
    low: float
    high: float
    n: int


class ListedRun(TypedDict):
    """A run as `repro runs` shows it, with the path and the size in bytes of its file."""

    digest: str
    paper: str
    arm: str
    seed: int
    scale: str
    overrides: dict[str, object]
    created: str
    supersedes: str | None
    scores: list[ListedScore]
    path: str
    size: int


class Index(Generic[T]):
    """An index that is read when it is opened and, if it has changed, written when it is closed.

    The file lies beside the runs of this machine. If it cannot be written, entries are made each
    time.

    Args:
        file: The name of the index in runs/.
        make: Returns the entry of a record, given the path of its file.
    """

    def __init__(self, file: str, make: Callable[[Path], T]):
        self._path, self._make = root() / "runs" / file, make

    def __enter__(self) -> Self:
        self._lines = read_lines(self._path)
        self._changed = False
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._changed:
            lines = {name: line for name, line in self._lines.items() if (root() / name).exists()}
            with suppress(OSError):
                write_atomic(self._path, json.dumps(lines) + "\n")

    def entries(self, slug: str | None = None) -> Iterator[T]:
        """Yield the entry of every record of a paper, or of all papers.

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


def read_lines(path: Path) -> dict[str, list[Any]]:  # Any: JSON of several types
    """Return size, time and entry by record path; empty if the index is absent or damaged."""
    try:
        lines = json.loads(path.read_text(encoding="utf-8")).items()
        return {name: [size, time, entry] for name, (size, time, entry) in lines}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def kinds_and_scales() -> Index[tuple[str, str]]:
    """Return the index of `repro list`: the kind and the scale of each record."""
    return Index("index.json", kind_and_scale)


def kind_and_scale(path: Path) -> tuple[str, str]:
    """Return the kind and the scale of a record.

    Raises:
        DamagedFile: the record is no JSON object.
    """
    try:
        record = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{path}: not a JSON record ({error}); see `repro check`") from error
    return str(record.get("kind")), str(record.get("scale"))


def listed_runs() -> Index[ListedRun | None]:
    """Return the index of `repro runs`: an entry for each run, None for other records."""
    return Index("listed.json", listed_run)


def listed_run(path: Path) -> ListedRun | None:
    """Return identity, time, scores and file of a run; None for a record of another kind.

    Raises:
        DamagedFile: the record is not what was written.
    """
    run = read_record(path)
    if run["kind"] != "run":
        return None
    return {
        "digest": run["digest"],
        "paper": run["paper"],
        "arm": run["arm"],
        "seed": run["seed"],
        "scale": run["scale"],
        "overrides": run["overrides"],
        "created": run["created"],
        "supersedes": run["supersedes"],
        "scores": [listed_score(row) for row in run["scores"]],
        "path": str(path),
        "size": path.stat().st_size,
    }


def listed_score(row: ScoreRow) -> ListedScore:
    """Return what `repro runs` shows of a score."""
    return {
        "benchmark": row["benchmark"],
        "mode": row["mode"],
        "metric": row["metric"],
        "value": row["value"],
        "low": row["low"],
        "high": row["high"],
        "n": row["n"],
    }
