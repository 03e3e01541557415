"""Sends the log of a training to W&B: one W&B run for a training, also if it is resumed."""

import os
import shutil
from copy import copy
from pathlib import Path
from secrets import token_hex
from typing import Any

from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.integrations.integration_utils import WandbCallback

from core.records.notes import read_note, write_note
from core.settings.canonical import as_text
from core.settings.resolved import Resolved

ID = "wandb-id.json"  # the note in the stage's folder that holds it


def wandb_arguments(resolved: Resolved, seed: int) -> dict[str, Any]:  # Any: of several types
    """Return the arguments of `wandb.init` for a run: name, group, tags and config.

    The variables WANDB_NAME and WANDB_RUN_GROUP replace name and group; WANDB_TAGS adds tags.
    """
    paper, overrides = resolved.paper, resolved.overrides
    overridden = [f"{name}={as_text(value)}" for name, value in sorted(overrides.items())]
    tags = [
        paper.family,
        resolved.scale,
        resolved.arm,
        *os.environ.get("WANDB_TAGS", "").split(","),
    ]
    return {
        "name": os.environ.get("WANDB_NAME", " ".join([resolved.arm, f"seed {seed}", *overridden])),
        "group": os.environ.get("WANDB_RUN_GROUP", paper.slug),
        "tags": [*dict.fromkeys(filter(None, tags))],
        "config": {
            "paper": paper.slug,
            "arm": resolved.arm,
            "scale": resolved.scale,
            "sources": {name: setting.source for name, setting in resolved.values.items()},
        },
    }


def run_id(path: Path) -> str:
    """Return the id of a W&B run from a note, which is written if it is absent.

    Raises:
        DamagedFile: the note is not what was written.
    """
    if not path.exists():
        write_note(path, {"id": token_hex(4)})
    return str(read_note(path, "delete it to begin another W&B run")["id"])


class WandbRows(WandbCallback):
    """Callback that sends row i of the log as step i of the W&B run.

    A resumed training sends the rows of its checkpoint that W&B lacks. An offline W&B run cannot be
    continued, so a new one is begun that holds all rows, and the old one is deleted.
    """

    def __init__(self, folder: Path, resolved: Resolved, seed: int):
        super().__init__()
        self.note = folder / ID
        self.arguments = wandb_arguments(resolved, seed)

    def setup(
        self, args: TrainingArguments, state: TrainerState, model: object, **kwargs: object
    ) -> None:
        """Open the W&B run of this training, and send the rows of the log that it lacks."""
        if state.is_world_process_zero and self._wandb.run is None:
            name = run_id(self.note)
            offline = os.environ.get("WANDB_MODE") == "offline"
            run = self._wandb.init(
                project=os.environ.get("WANDB_PROJECT", "huggingface"),
                id=name,
                **self.arguments,
                resume=None if offline else "allow",  # offline it would only warn
            )
            if run.offline:
                own_folder = Path(run.dir).parent
                for old in {*own_folder.parent.glob(f"offline-run-*-{name}")} - {own_folder}:
                    shutil.rmtree(old, ignore_errors=True)
        super().setup(args, state, model, **kwargs)  # pyright: ignore[reportUnknownMemberType] - untyped
        for number, row in enumerate(state.log_history):
            then = copy(state)
            then.global_step = int(row["step"])
            self.send(number, args, then, {k: v for k, v in row.items() if k != "step"})

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        model: object = None,
        logs: dict[str, object] | None = None,
        **_: object,
    ) -> None:
        """Send the newest row of the log; open the W&B run first if training has not begun."""
        if not self._initialized:
            self.setup(args, state, model)  # sends this row too
        elif logs:
            self.send(len(state.log_history) - 1, args, state, logs)

    def send(
        self, number: int, args: TrainingArguments, state: TrainerState, logs: dict[str, object]
    ) -> None:
        """Send row `number` unless W&B has it."""
        run: Any = self._wandb.run
        if state.is_world_process_zero and number >= run.step:
            super().on_log(args, state, TrainerControl(), logs=logs)  # pyright: ignore[reportUnknownMemberType] - untyped
