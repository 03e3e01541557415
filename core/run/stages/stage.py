"""A stage is typed inputs to typed outputs, keyed by its inputs, skipped when its output exists."""

import fcntl
import json
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from core.run.files import SHORT, canonical, digest_of, folder_files, no_space, write_atomic
from core.run.places import root
from eval.errors import DamagedFile

SCHEMA = 1  # of stage outputs and records; part of every key
DONE = "done.json"

Outputs: TypeAlias = dict[str, Any]  # Any: JSON of several types


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of a run: its name and all that its output depends on."""

    name: str
    inputs: Mapping[str, object]

    @property
    def key(self) -> str:
        """Digest of the name, the inputs and our schema."""
        inputs = {"stage": self.name, "schema": SCHEMA, "inputs": self.inputs}
        return digest_of(inputs)[:SHORT]

    @property
    def folder(self) -> Path:
        """Where its output lies."""
        return root() / "runs" / f"{self.name}-{self.key}"

    def outputs(self) -> Outputs | None:
        """What it wrote, or None if it has not finished.

        Raises:
            DamagedFile: an output is not what was written.
        """
        path = self.folder / DONE
        if not path.is_file():
            return None
        try:
            done = json.loads(path.read_text(encoding="utf-8"))
            outputs, written = done["outputs"], done["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFile(f"{path}: not a stage's end note ({error}); {self.remedy}") from error
        found = folder_files(self.folder)
        for name, digest in written.items():
            if found.get(name) != digest:
                state = "is missing" if name not in found else "was altered or cut off"
                raise DamagedFile(f"{self.folder / name} {state}; {self.remedy}")
        return outputs

    @property
    def remedy(self) -> str:
        """What to do about a damaged output."""
        return f"delete {self.folder} or run with --force to do this stage again"


def run_stage(
    stage: Stage, work: Callable[[Path], Mapping[str, object]], *, force: bool = False
) -> Outputs:
    """The stage's outputs: as they lie there, or made now by `work` in the stage's folder.

    What `work` leaves in the folder when it is killed is there when it is called again; `force`
    drops finished outputs only, so a forced run continues too.
    """
    with _locked(stage), no_space(stage.folder):
        if force and (stage.folder / DONE).exists():
            shutil.rmtree(stage.folder)
        if (found := stage.outputs()) is not None:
            return found
        stage.folder.mkdir(parents=True, exist_ok=True)
        outputs = canonical(work(stage.folder))
        note = {
            "stage": stage.name,
            "inputs": canonical(stage.inputs),
            "outputs": outputs,
            "files": folder_files(stage.folder),
        }
        write_atomic(stage.folder / DONE, json.dumps(note, ensure_ascii=False, indent=1) + "\n")
        return outputs  # type: ignore[return-value]  # canonical keeps a mapping a dict


def say(line: str) -> None:
    """One line of progress on standard error."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _locked(stage: Stage) -> Generator[None]:
    """Let one process at a time work on a stage; the others wait and find it done."""
    path = stage.folder.with_name(f".{stage.folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{stage.name}: another process is at it, waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
