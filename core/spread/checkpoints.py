"""Checkpoints that a training resumes from; half-written ones are removed."""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from core.records.files import folder_files
from core.records.notes import check_files, read_note, write_note
from eval.terminal import say

SEAL = "complete.json"


class SealCallback(TrainerCallback):
    """Callback that writes the digests of a checkpoint's files into it once all are written."""

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
            write_note(folder / SEAL, folder_files(folder))


def last_checkpoint(output_dir: Path) -> Path | None:
    """Return the newest sealed checkpoint, and remove unsealed ones; None if there is none.

    Raises:
        DamagedFile: a file of the newest checkpoint differs from its seal.
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
    """Check that the files of a checkpoint are those that were sealed.

    Raises:
        DamagedFile: a file differs; the message says what to do.
    """
    remedy = f"delete {folder} to continue from the checkpoint before it"
    check_files(folder, read_note(folder / SEAL, remedy), remedy, allowed=lambda n: n == SEAL)
