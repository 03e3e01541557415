"""Finished batches of an evaluation in an append-only file, so that a killed run repeats none."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from eval.errors import BadValue, DamagedFile

Tokens = list[list[int]]


class Journal(AbstractContextManager["Journal"]):
    """Token ids of finished batches.

    A batch is found by all that it depends on besides the model, the seed included. So a resumed
    run decodes the very batches that were not finished and ends in the same completions. `header`
    names the rest. A last line without its end is what a kill leaves; it is dropped.

    Raises:
        BadValue: the file was begun under another header, or another process writes to it.
        DamagedFile: a line is not what was written.
    """

    def __init__(self, path: Path, header: Mapping[str, object]):
        self.path = path
        self.batches: dict[str, Tokens] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+b")
        try:
            self._open(json.loads(json.dumps(dict(header))))  # as it will be read: lists, no tuples
        except BaseException:
            self.file.close()
            raise

    def __exit__(self, *_: object) -> None:
        """Close the file; what is in it stays."""
        self.file.close()

    def batch(self, asked: Mapping[str, Any], decode: Callable[[], Tokens]) -> Tokens:
        """What `decode` gives or gave."""
        name = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        if name not in self.batches:
            self.batches[name] = decode()
            self._append({"batch": name, "tokens": self.batches[name]})
        return self.batches[name]

    def _open(self, header: dict[str, object]) -> None:
        """Read what is there, or begin with the header."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadValue(f"{self.path}: another process is writing it; wait for it") from None
        self.file.seek(0)
        lines = self.file.read().split(b"\n")
        self.file.truncate(sum(len(line) + 1 for line in lines[:-1]))
        rows = [self._read(line, number) for number, line in enumerate(lines[:-1], start=1)]
        if not rows:
            return self._append({"header": header})
        if rows[0].get("header") != header:
            raise BadValue(
                f"{self.path}: begun for {rows[0].get('header')}, asked for {header}: "
                "give the same command, or delete it to begin again"
            )
        self.batches = {row["batch"]: row["tokens"] for row in rows[1:]}
        return None

    def _append(self, row: Mapping[str, object]) -> None:
        """Write a line with its checksum; it is on the disk when this returns."""
        text = json.dumps(row, separators=(",", ":")).encode()
        self.file.write(checksum(text) + b" " + text + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def _read(self, line: bytes, number: int) -> dict[str, Any]:
        """One line, checked."""
        found, _, text = line.partition(b" ")
        if found != checksum(text):
            raise DamagedFile(
                f"{self.path}, line {number}: not what was written there; "
                "delete the file to begin again"
            )
        return json.loads(text)


def checksum(text: bytes) -> bytes:
    """64 bits that say whether a line is whole."""
    return hashlib.sha256(text).hexdigest()[:16].encode()
