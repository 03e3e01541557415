"""Stages: steps of a run, keyed by their inputs and skipped if their output exists."""

import fcntl
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Container, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import ClassVar, TypeAlias

from core.records.files import folder_files, no_space
from core.records.notes import check_files, read_note, write_note
from core.records.places import DONE, MODELS, root
from core.settings.canonical import SHORT, canonical, digest_of
from eval.errors import DamagedFile
from eval.json_lines import JsonObject
from eval.terminal import say

SCHEMA = 1  # of stage outputs and records; part of every key
UNFIT = re.compile(r"[^A-Za-z0-9_.+=]+")  # what stays out of the name of a folder
LABEL = 60  # characters of it at most
CARD = "README.md"  # in that folder: what a reader is told of the model
PAGE = "samples.html"  # the answers of the model, to browse
OUTCOMES = "outcomes"  # folder of samples without their texts, beside the samples
PARTIAL = re.compile(r"\.(?P<name>.+)\.\w+")  # a file that another process is about to write

Outputs: TypeAlias = JsonObject


class Stage(ABC):
    """A step of a run: its inputs, a key made of them, and the work that makes the output."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, object]:
        """The values that the output depends on."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """The name of what the stage works on, as plans show it."""

    @abstractmethod
    def work(self, folder: Path) -> Mapping[str, object]:
        """Make the output in this folder, where a killed call may have left a part of it.

        Returns:
            The outputs as JSON.
        """

    @cached_property
    def key(self) -> str:
        """The digest of the name, the inputs and the schema."""
        inputs = {"stage": self.name, "schema": SCHEMA, "inputs": self.inputs}
        return digest_of(inputs)[:SHORT]

    @property
    def label(self) -> str:
        """The readable part of the name of the stage's folder."""
        return self.subject

    @property
    def folder(self) -> Path:
        """The folder of the output, named by the stage's name, label and key.

        A folder of the same key with another label is used if it exists.
        """
        runs, label = root() / "runs", UNFIT.sub("-", self.label)[-LABEL:].strip("-")
        named = runs / "-".join([self.name, *([label] if label else []), self.key])
        if named.is_dir():
            return named
        return next(runs.glob(f"{self.name}-*{self.key}"), named)

    @property
    def is_done(self) -> bool:
        """True if the stage has finished."""
        return (self.folder / DONE).is_file()

    @property
    def remedy(self) -> str:
        """The advice for a damaged output."""
        return f"delete {self.folder} or run with --force to do this stage again"

    def outputs(self) -> Outputs | None:
        """Return the outputs of the finished stage; None if it has not finished.

        Raises:
            DamagedFile: an output is not what was written.
        """
        path = self.folder / DONE
        if not path.is_file():
            return None
        note = read_note(path, self.remedy)
        if note.get("inputs") != canonical(self.inputs):
            raise DamagedFile(f"{path}: the note of a stage with other inputs; {self.remedy}")
        written = note["files"]
        check_files(
            self.folder, written, self.remedy, allowed=lambda name: is_made_later(name, written)
        )
        return note["outputs"]

    def run(self, *, force: bool = False) -> Outputs:
        """Return the outputs; run the stage first if it has not finished.

        With `force` finished outputs are deleted first. A forced run that was killed continues.

        Raises:
            DamagedFile: a finished output is not what was written.
            DiskFull: there is no space for the outputs.
        """
        with _hold_lock(self), no_space(self.folder):
            if force and self.is_done:
                shutil.rmtree(self.folder)
            if (finished := self.outputs()) is not None:
                return finished
            self.folder.mkdir(parents=True, exist_ok=True)
            outputs = canonical(self.work(self.folder))
            note = {
                "stage": self.name,
                "inputs": canonical(self.inputs),
                "outputs": outputs,
                "files": folder_files(self.folder),
            }
            write_note(self.folder / DONE, note)
            return outputs  # type: ignore[return-value]  # canonical keeps a mapping a dict


class Policy(Stage):
    """A stage that yields a model, which later stages train or score."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The folder of the model, or its name."""


def is_made_later(name: str, written: Container[str]) -> bool:
    """Return whether a file may be added to the folder of a finished stage.

    Allowed are its note, the page of its answers, the card of its model, and outcomes of the
    samples that were written with it.
    """
    path = PurePosixPath(name)
    if partial := PARTIAL.fullmatch(path.name):
        path = path.with_name(partial["name"])
    sampled = path.parent.name == OUTCOMES and str(path.parent.parent / path.name) in written
    cards = [f"{folder}/{CARD}" for folder in MODELS.values()]
    return str(path) in (DONE, PAGE, *cards) or sampled


@contextmanager
def _hold_lock(stage: Stage) -> Generator[None]:
    """Hold the lock of a stage; other processes wait, then find the stage finished."""
    path = root() / "runs" / f".{stage.name}-{stage.key}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{stage.name}: another process is at it, waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
