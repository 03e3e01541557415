"""Finished batches of an evaluation in an append-only file, so that a killed run repeats none."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.errors import BadValue, DamagedFile
from eval.samples.tir import Executor
from eval.sandbox import Execution

PROGRAMS = 64  # whose results enter together


class Journal(AbstractContextManager["Journal"]):
    """What finished batches gave: token ids, results of programs.

    A batch is found by all that it depends on besides the model, the seeds included. So a resumed
    run decodes the very batches that were not finished and ends in the same completions. `header`
    names the rest. A last line without its end is what a kill leaves; it is dropped.

    Raises:
        BadValue: the file was begun under another header, or another process writes to it.
        DamagedFile: a line is not what was written.
    """

    def __init__(self, path: Path, header: Mapping[str, object]):
        self.path = path
        self.batches: dict[str, Any] = {}
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

    def once(self, asked: object, work: Callable[[], Any]) -> Any:
        """What `work` gives or gave, as JSON."""
        (found,) = self.each([asked], lambda missing: ((number, work()) for number in missing))
        return found

    def each(
        self, asked: Sequence[object], work: Callable[[list[int]], Iterable[tuple[int, Any]]]
    ) -> list[Any]:
        """What `work` gives or gave for each, as JSON; what it gives enters as it comes.

        It gets the numbers of those that are not there, and gives some number's result at a time.
        """
        names = [name_of(one) for one in asked]
        missing = [number for number, name in enumerate(names) if name not in self.batches]
        for number, found in work(missing):
            self._append({"batch": names[number], "found": found})
            self.batches[names[number]] = found
        return [self.batches[name] for name in names]

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
        if changed := difference(rows[0].get("header", {}), header):
            raise BadValue(
                f"{self.path}: begun with {changed}: "
                "give the same command, or delete it to begin again"
            )
        self.batches = {row["batch"]: row["found"] for row in rows[1:]}
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


@dataclass(frozen=True)
class JournaledExecutor:
    """Runs programs whose results are not in the journal yet.

    What a program prints may depend on when it runs: an answer that went on from an output must
    find the same one again.
    """

    executor: Executor
    journal: Journal

    def run(self, programs: Sequence[str]) -> list[Execution]:
        """What became of each program, in order."""
        batches = [programs[i : i + PROGRAMS] for i in range(0, len(programs), PROGRAMS)]
        return [Execution(**row) for batch in batches for row in self.batch(batch)]

    def batch(self, programs: Sequence[str]) -> list[dict[str, Any]]:
        """The results of some programs as JSON."""
        return self.journal.once(
            {"programs": list(programs)},
            lambda: [asdict(done) for done in self.executor.run(programs)],
        )


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What was another value: `seed=0, asked for 1`; empty when all agree."""
    rows = [(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]
    return "; ".join(f"{name}={was!r}, asked for {now!r}" for name, was, now in rows if was != now)


def name_of(asked: object) -> str:
    """What a batch is found by: the digest of all that it depends on."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def checksum(text: bytes) -> bytes:
    """64 bits that say whether a line is whole."""
    return hashlib.sha256(text).hexdigest()[:16].encode()
