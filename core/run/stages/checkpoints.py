"""Which checkpoint a training continues from: the last whole one; a half-written one is dropped."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.run.files import folder_files, write_atomic
from core.run.stages.stage import say
from eval.errors import DamagedFile

SEAL = "complete.json"


class SealCallback(TrainerCallback):
    """Writes the digests of a checkpoint's files into it once all of them are there."""

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Seal the checkpoint of this step once every process has written its part."""
        processes: Any = torch.distributed  # Any: half typed
        if processes.is_initialized():
            processes.barrier()
        if state.is_world_process_zero and args.output_dir:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            write_atomic(folder / SEAL, json.dumps(folder_files(folder), indent=1) + "\n")


def last_checkpoint(output_dir: Path) -> Path | None:
    """The newest sealed checkpoint; unsealed ones are removed with a line that says so.

    Raises:
        DamagedFile: a file of the newest one is not what its seal says.
    """
    if not output_dir.is_dir():
        return None
    folders = [p for p in output_dir.iterdir() if p.name.startswith("checkpoint-") and p.is_dir()]
    sealed: list[Path] = []
    for folder in folders:
        if (folder / SEAL).is_file():
            sealed.append(folder)
        else:
            say(f"train: {folder.name} was only half written when the run stopped, dropped")
            shutil.rmtree(folder)
    if not sealed:
        return None
    newest = max(sealed, key=lambda folder: int(folder.name.removeprefix("checkpoint-")))
    check_seal(newest)
    return newest


def check_seal(folder: Path) -> None:
    """Refuse a checkpoint whose files are not those that were sealed.

    Raises:
        DamagedFile: the file, and what to do.
    """
    remedy = f"delete {folder} to continue from the checkpoint before it"
    try:
        sealed = dict(json.loads((folder / SEAL).read_text(encoding="utf-8")))
    except ValueError as error:
        raise DamagedFile(f"{folder / SEAL}: not a seal ({error}); {remedy}") from error
    found = folder_files(folder)
    for name, digest in sealed.items():
        if found.get(name) != digest:
            state = "is missing" if name not in found else "was altered or cut off"
            raise DamagedFile(f"{folder / name} {state}; {remedy}")
