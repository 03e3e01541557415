"""Training log as JSON lines; after a resume it equals the log of an uninterrupted run."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from eval.errors import DamagedFile
from eval.json_lines import JsonObject

LogRow: TypeAlias = JsonObject
SUMMARY = "train_runtime"  # in the line that ends every train(), finished run or not


class JsonlCallback(TrainerCallback):
    """Callback that appends every logged dict with its step to `path`, on the main process only.

    A new run starts the file anew. A run resumed at step s keeps the lines up to s without the
    closing summary, which is written again; an incomplete last line is removed. NaN and infinity
    become null.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._train: TrainerState | None = None  # each train() has a state of its own

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Truncate the file to the lines up to the current step."""
        self._catch_up(state)

    def on_log(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        logs: LogRow | None = None,
        **_: object,
    ) -> None:
        """Append one line in a single write."""
        if state.is_world_process_zero and logs:
            if state.max_steps > 0:  # in train(), where another callback may log first
                self._catch_up(state)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                file.write(_line({"step": state.global_step, **logs}))

    def _catch_up(self, state: TrainerState) -> None:
        """Remove the lines that the training that begins now will write again."""
        if self._train is state or not state.is_world_process_zero:
            return
        self._train = state
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = read_log(self.path, cut_off=True) if state.global_step else []
        _rewrite(
            self.path, [r for r in rows if r["step"] <= state.global_step and SUMMARY not in r]
        )


def read_log(path: str | Path, *, cut_off: bool = False) -> list[LogRow]:
    """Return the rows of a log, oldest first; empty if the file does not exist.

    With `cut_off` an incomplete last line, left by a killed writer, is dropped.

    Raises:
        DamagedFile: a line is no JSON object with a step, or the last line is incomplete.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    *lines, last_line = content.split(b"\n")
    if last_line and not cut_off:
        raise DamagedFile(f"{path}: the last line is cut off; resume the run to repair it")
    return [_row(line, path, number) for number, line in enumerate(lines, start=1)]


def _row(line: bytes, path: str | Path, number: int) -> LogRow:
    try:
        row = json.loads(line)
    except ValueError as error:
        row = error
    if isinstance(row, dict) and isinstance(row.get("step"), int):
        return row
    raise DamagedFile(
        f"{path}, line {number}: found {line[:40]!r}, expected a JSON object with a step;"
        " delete the run's folder to start it anew"
    )


def _line(row: Mapping[str, object]) -> bytes:
    return json.dumps({k: _plain(v) for k, v in row.items()}, ensure_ascii=False).encode() + b"\n"


def _plain(value: object) -> object:
    """Convert tensors and numpy scalars to numbers, NaN and infinity to None."""
    item = getattr(value, "item", None)
    number = value if item is None else item()
    return None if isinstance(number, float) and not math.isfinite(number) else number


def _rewrite(path: Path, rows: list[LogRow]) -> None:
    """Replace the file atomically, so that a kill leaves the old or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(b"".join(_line(row) for row in rows))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
