"""One W&B run for one training, however often it is killed: the same id, and each row once."""

import os
import shutil
from copy import copy
from pathlib import Path
from secrets import token_hex
from typing import Any

from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.integrations.integration_utils import WandbCallback

from core.run.files import write_atomic

ID = "wandb-id"  # the file in the stage's folder that holds it


class WandbRows(WandbCallback):
    """Sends the log's rows, row i as step i of W&B.

    A resumed training sends the rows of its checkpoint again, less those that W&B has. Offline it
    has none: a run begun offline cannot be continued, so the new one holds all rows, and those it
    takes the place of are removed.
    """

    def __init__(self, folder: Path):
        super().__init__()
        self.note = folder / ID

    def setup(
        self, args: TrainingArguments, state: TrainerState, model: Any, **kwargs: object
    ) -> None:
        """Open the run of this training, and bring it to where the log is."""
        if state.is_world_process_zero and self._wandb.run is None:
            if not self.note.exists():
                write_atomic(self.note, token_hex(4))
            name = self.note.read_text(encoding="utf-8")
            offline = os.environ.get("WANDB_MODE") == "offline"
            run = self._wandb.init(
                project=os.environ.get("WANDB_PROJECT", "huggingface"),
                name=args.run_name,
                id=name,
                resume=None if offline else "allow",  # offline it would only warn
            )
            if run.offline:
                here = Path(run.dir).parent
                for old in {*here.parent.glob(f"offline-run-*-{name}")} - {here}:
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
        model: Any = None,
        logs: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Send one row; the first of all may come before the training begins."""
        if not self._initialized:
            self.setup(args, state, model)  # sends this row too
        elif logs:
            self.send(len(state.log_history) - 1, args, state, logs)

    def send(
        self, number: int, args: TrainingArguments, state: TrainerState, logs: dict[str, Any]
    ) -> None:
        """Send row `number` unless W&B has it."""
        run: Any = self._wandb.run
        if state.is_world_process_zero and number >= run.step:
            super().on_log(args, state, TrainerControl(), logs=logs)  # pyright: ignore[reportUnknownMemberType] - untyped
