"""Append-only journal of an evaluation's finished batches, so that a killed run resumes."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from eval.errors import BadValue, DamagedFile
from eval.json_lines import JsonObject
from eval.samples.tir import Executor
from eval.sandbox import Execution

Result = TypeVar("Result")
PROGRAMS = 64  # number of programs whose results are one entry


class Journal(AbstractContextManager["Journal"]):
    """File of the results of finished batches: token ids, results of programs.

    A batch is identified by all that it depends on besides the model, seeds included, so a resumed
    run decodes the unfinished batches only and ends in the same completions. An incomplete last
    line, as a killed process leaves it, is dropped.

    Args:
        path: the file.
        header: fields that a resumed run must share, such as the model.

    Raises:
        BadValue: the file has another header, or another process writes to it.
        DamagedFile: a line fails its checksum.
    """

    def __init__(self, path: Path, header: Mapping[str, object]):
        self.path = path
        self.batches: dict[str, Any] = {}  # Any: JSON results
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+b")
        try:
            self._open(json.loads(json.dumps(dict(header))))  # tuples become lists, as when read
        except BaseException:
            self.file.close()
            raise

    def __exit__(self, *_: object) -> None:
        """Close the file, which stays on disk."""
        self.file.close()

    def get_or_compute(self, request: object, work: Callable[[], Result]) -> Result:
        """Return the JSON result of a batch, from the journal or else from `work`."""
        (stored,) = self.get_or_compute_all(
            [request], lambda missing: ((number, work()) for number in missing)
        )
        return stored

    def get_or_compute_all(
        self, requests: Sequence[object], work: Callable[[list[int]], Iterable[tuple[int, Result]]]
    ) -> list[Result]:
        """Return the JSON results of batches, from the journal or else from `work`.

        Args:
            requests: what identifies each batch.
            work: function from the indices of missing batches to (index, result) pairs; each
                pair is written to the journal as it arrives.
        """
        keys = [batch_key(request) for request in requests]
        missing = [index for index, key in enumerate(keys) if key not in self.batches]
        for index, computed in work(missing):
            self._append({"batch": keys[index], "found": computed})
            self.batches[keys[index]] = computed
        return [self.batches[key] for key in keys]

    def _open(self, header: dict[str, object]) -> None:
        """Lock the file and read its batches; write the header to a new file."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadValue(
                f"{self.path}: another process is writing it; wait until it ends"
            ) from None
        self.file.seek(0)
        lines = self.file.read().split(b"\n")
        self.file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        rows = [self._parse_line(line, number) for number, line in enumerate(lines[:-1], start=1)]
        if not rows:
            return self._append({"header": header})
        if changed := difference(rows[0].get("header", {}), header):
            raise BadValue(
                f"{self.path}: begun with {changed}: "
                "give the same command, or delete it to begin again"
            )
        self.batches = {row["batch"]: row["found"] for row in rows[1:]}
        return None

    def _append(self, row: Mapping[str, object]) -> None:
        """Write a row with its checksum and sync it to disk."""
        text = json.dumps(row, separators=(",", ":")).encode()
        self.file.write(checksum(text) + b" " + text + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def _parse_line(self, line: bytes, number: int) -> JsonObject:
        """Parse one line after verifying its checksum.

        Raises:
            DamagedFile: the checksum does not match.
        """
        recorded_checksum, _, text = line.partition(b" ")
        if recorded_checksum != checksum(text):
            raise DamagedFile(
                f"{self.path}, line {number}: not what was written there; "
                "delete the file to begin again"
            )
        return json.loads(text)


@dataclass(frozen=True)
class JournaledExecutor:
    """Executor that runs only programs whose results are not in the journal.

    A program's output may vary between runs, and an answer that continued after an output must find
    the same output again.
    """

    executor: Executor
    journal: Journal

    def run(self, programs: Sequence[str]) -> list[Execution]:
        """Return the results of programs, in order."""
        batches = [programs[i : i + PROGRAMS] for i in range(0, len(programs), PROGRAMS)]
        return [Execution(**row) for batch in batches for row in self.run_batch(batch)]

    def run_batch(self, programs: Sequence[str]) -> list[JsonObject]:
        """Return the results of one batch of programs as JSON."""
        return self.journal.get_or_compute(
            {"programs": list(programs)},
            lambda: [asdict(execution) for execution in self.executor.run(programs)],
        )


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """Describe fields that differ, such as `seed=0, asked for 1`; empty if none do."""
    rows = [(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]
    return "; ".join(
        f"{name}={old_field!r}, asked for {new_field!r}"
        for name, old_field, new_field in rows
        if old_field != new_field
    )


def batch_key(request: object) -> str:
    """Return the SHA-256 digest that identifies a batch."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def checksum(text: bytes) -> bytes:
    """Return a 64-bit checksum of a line as hexadecimal digits."""
    return hashlib.sha256(text).hexdigest()[:16].encode()
