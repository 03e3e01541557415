"""Files in runs/ that no record refers to: stages, samples and pages."""

import fcntl
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.records.answers import Fields
from core.records.notes import read_note
from core.records.places import DONE, PARQUET, own_results, root
from core.records.record import Record, current, read_records
from core.records.schema import tunings_of
from core.settings.canonical import canonical_text
from core.settings.run_settings import HELD_OUT

STAGE = re.compile("[a-z]+-.*?[0-9a-f]{16}")  # the name of a stage's folder ends with its key
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')  # in JSON
NAMED = re.compile("[0-9a-f]{64}|[0-9a-f]{16}")  # digests and keys
POLICIES = ("start", "train", "averaged")  # stages that give one
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
    """Return finished stages, samples and pages that no record refers to, the largest first.

    A stage is in use if a record holds a digest of its outputs, or if a stage in use began with
    it. With `unfinished` interrupted stages are included, from which a command would continue.
    Stages that a process works on are never included.

    Raises:
        DamagedFile: a record or a stage's end note is not what was written.
    """
    records, notes = current(read_records()), end_notes()
    unused = [
        *((path, "no record") for path in unused_stages(notes, records)),
        *((path, "unfinished") for path, note in notes.items() if unfinished and not note),
        *((path, "no record") for path in unused_samples(records)),
        *((path, "no record") for path in unused_pages(records)),
    ]
    free = [
        Leftover(path=path, why=reason, size=size_of(path))
        for path, reason in unused
        if is_free(path)
    ]
    return sorted(free, key=lambda leftover: (-leftover.size, leftover.path))


def end_notes() -> dict[Path, Fields]:
    """Return the end note of every stage folder in runs/; an empty one for an unfinished stage."""
    folders = (root() / "runs").glob("*")
    return {path: end_note(path) for path in folders if STAGE.fullmatch(path.name)}


def unused_stages(notes: Mapping[Path, Fields], records: Sequence[Record]) -> list[Path]:
    """Return the folders of finished stages that no record refers to."""
    finished = {path: note for path, note in notes.items() if note}
    stages = stages_in_use(finished, records)
    return [path for path in finished if path not in stages]


def unused_samples(records: Sequence[Record]) -> list[Path]:
    """Return the files of samples that no record refers to."""
    names = names_in_records(records) | {record["digest"] for record in records}
    return [path for path in own_results().glob(f"*/*{PARQUET}") if path.stem not in names]


def unused_pages(records: Sequence[Record]) -> list[Path]:
    """Return the folders of pages whose record of verdicts is gone."""
    digests = {record["digest"] for record in records}
    pages = [(path, PAGE.fullmatch(path.name)) for path in (root() / "runs" / PAGES).glob("*")]
    return [path for path, match in pages if match and match[1] not in digests]


def end_note(folder: Path) -> Fields:
    """Return the inputs and outputs of a stage; empty if the stage has not finished.

    Raises:
        DamagedFile: the note is not what a stage writes.
    """
    path = folder / DONE
    if not path.is_file():
        return {}
    note = read_note(path, f"delete {folder}")
    return {"inputs": note["inputs"], "outputs": note["outputs"]}


def stages_in_use(notes: Mapping[Path, Fields], records: Sequence[Record]) -> set[Path]:
    """Return the stages that made what records hold, and all stages that these began with."""
    names = names_in_records(records)
    curves = {canonical_text(row["curve"]) for row in trials_in(records) if "curve" in row}
    stages: set[Path] = set()
    pending = dict(notes)
    while True:
        sources = {
            path: note
            for path, note in pending.items()
            if gave(path, note, names) or on_trial(note, curves)
        }
        if not sources:
            return stages
        stages |= sources.keys()
        for path, note in sources.items():
            del pending[path]
            names |= {*names_in(note["inputs"]), "-".join(kind_and_key(path))}


def trials_in(records: Sequence[Record]) -> Iterator[Mapping[str, object]]:
    """Yield the trials of learning rates in records of trials and in profiles.

    Those of older profiles have no curve.
    """
    for tuning in tunings_of(records):
        yield from tuning["trials"]
    for record in records:
        if record["kind"] == "profile":
            for rates in record["rates"].values():
                yield from rates["tried"]


def kind_and_key(path: Path) -> tuple[str, str]:
    """Return the first word of the name of a stage's folder, and its key."""
    return path.name.partition("-")[0], path.name[-16:]


def gave(path: Path, note: Fields, names: set[str]) -> bool:
    """Return whether a stage made something with one of these names.

    Answers and measures must also be those of a named policy, as others may be equal.
    """
    inputs, outputs = note["inputs"], note["outputs"]
    output_names = names_in(outputs.get("weights", outputs))
    if "policy" in inputs and not {f"{kind}-{inputs['policy']}" for kind in POLICIES} & names:
        return False
    return path.name[-16:] in names or not output_names or bool(output_names & names)


def on_trial(note: Fields, curves: set[str]) -> bool:
    """Return whether a stage is a training of which a record of trials holds the curve."""
    curve = note["outputs"].get("curves", {}).get(HELD_OUT)
    return curve is not None and canonical_text(curve) in curves


def names_in(value: object) -> set[str]:
    """Return the digests and keys that occur in the strings of a JSON value."""
    strings = STRING.findall(canonical_text(value))
    return {name for string in strings for name in NAMED.findall(string)}


def names_in_records(records: Iterable[Record]) -> set[str]:
    """Return the digests and keys that occur in records."""
    return {name for record in records for name in names_in(record)}


def is_free(path: Path) -> bool:
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
    return sum(file.stat().st_size for file in files if file.is_file())
