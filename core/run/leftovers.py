"""Files in runs/ that no record refers to: stages, samples and pages."""

import fcntl
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.records.notes import read_note
from core.records.places import DONE, SAMPLES, own_results, root
from core.records.record import Record, current, read_records
from core.records.schema import tunings_of
from core.settings.canonical import canonical_text
from core.settings.run_settings import HELD_OUT

STAGE = re.compile("[a-z]+-.*?[0-9a-f]{16}")  # the name of a stage's folder ends with its key
NAMED = re.compile("[0-9a-f]{64}|[0-9a-f]{16}")  # digests and keys
POLICIES = ("start", "train")  # stages that give one
PAGES = "reports"
PAGE = re.compile(".*-([0-9a-f]{16})")  # the folder of a page of runs with settings of one's own


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A file or folder, the reason why nothing refers to it, and its size in bytes."""

    path: Path
    why: str
    size: int

    def remove(self) -> None:
        """Delete the file or folder; it is made again when it is needed."""
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink()


def leftovers(*, unfinished: bool = False) -> list[Leftover]:
    """Finished stages, samples and pages without a record, the largest first.

    A stage is kept if a record holds a digest of its outputs, or if one that is kept began with
    it. With `unfinished` also those that a killed command left, from which it would go on; what a
    process is at is never among them.

    Raises:
        DamagedFile: a record or a stage's end note is not what was written.
    """
    records = current(read_records())
    runs = root() / "runs"
    stages = {path: end_note(path) for path in runs.glob("*") if STAGE.fullmatch(path.name)}
    kept = referred(stages, records)
    found = [(path, "no record") for path, note in stages.items() if note and path not in kept]
    if unfinished:
        found += [(path, "unfinished") for path, note in stages.items() if not note]
    told = {digest for record in records for digest in named(record)}
    samples = (own_results() / SAMPLES).glob("*.jsonl.gz")
    found += [(path, "no record") for path in samples if path.name.partition(".")[0] not in told]
    shown = {record["digest"] for record in records}
    pages = ((path, PAGE.fullmatch(path.name)) for path in (runs / PAGES).glob("*"))
    found += [(path, "no record") for path, of in pages if of and of[1] not in shown]
    sized = [Leftover(path=path, why=why, size=size_of(path)) for path, why in found if free(path)]
    return sorted(sized, key=lambda one: (-one.size, one.path))


def end_note(folder: Path) -> dict[str, Any]:
    """Return the inputs and outputs of a stage; empty if the stage has not finished.

    Raises:
        DamagedFile: the note is not what a stage writes.
    """
    path = folder / DONE
    if not path.is_file():
        return {}
    note = read_note(path, f"delete {folder}")
    return {"inputs": note["inputs"], "outputs": note["outputs"]}


def referred(stages: Mapping[Path, dict[str, Any]], records: list[Record]) -> set[Path]:
    """The stages that gave what records hold, and all that these began with."""
    told = {digest for record in records for digest in named(record)}
    curves = {canonical_text(row["curve"]) for one in tunings_of(records) for row in one["trials"]}
    kept: set[Path] = set()
    while True:
        more = {
            path
            for path, note in stages.items()
            if note and path not in kept and (gave(path, note, told) or on_trial(note, curves))
        }
        if not more:
            return kept
        kept |= more
        told |= {name for path in more for name in named(stages[path]["inputs"])}
        told |= {"-".join(kind_and_key(path)) for path in more}


def kind_and_key(path: Path) -> tuple[str, str]:
    """Return the first word of the name of a stage's folder, and its key."""
    return path.name.partition("-")[0], path.name[-16:]


def gave(path: Path, note: Mapping[str, Any], told: set[str]) -> bool:
    """Return whether a stage made something with one of these names.

    Answers and measures must also be those of a named policy, as others may be equal.
    """
    inputs, outputs = note["inputs"], note["outputs"]
    made = named(outputs.get("weights", outputs))
    if "policy" in inputs and not {f"{kind}-{inputs['policy']}" for kind in POLICIES} & told:
        return False
    return path.name[-16:] in told or not made or bool(made & told)


def on_trial(note: Mapping[str, Any], curves: set[str]) -> bool:
    """Return whether a stage is a training of which a record of trials holds the curve."""
    curve = note["outputs"].get("curves", {}).get(HELD_OUT)
    return curve is not None and canonical_text(curve) in curves


def named(value: object) -> set[str]:
    """Return the digests and keys that occur in a JSON value."""
    return set(NAMED.findall(canonical_text(value)))


def free(path: Path) -> bool:
    """Return whether no process works on a stage."""
    lock = next(path.parent.glob(f".*-{path.name[-16:]}.lock"), None)
    if lock is None:
        return True
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files: Iterator[Path] = path.rglob("*") if path.is_dir() else iter((path,))
    return sum(one.stat().st_size for one in files if one.is_file())
