"""State that a checkpoint needs beside weights for a resumed run to equal an uninterrupted one."""

from collections import defaultdict
from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any, ClassVar, Required, TypedDict, Unpack, cast

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import (
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import TrainOutput, has_length

from core.collect.completion_log import LogState
from core.configs.base import BaseConfig
from core.explain.phases import Phases
from core.forward.batches import Batch
from core.shards.past_weights import Weights
from core.shards.reference import mix_into
from core.shards.sharding import gather_weights
from core.trainers.publish import PublishedTrainer, TrainerArguments
from core.trainers.uncalled_methods import refuse_uncalled
from eval.errors import BadValue, DamagedFile

STATE = "rollout_state.pt"
REFERENCE = "reference.safetensors"


class ProcessState(TypedDict, total=False):
    """State of one process that the next step depends on, with the fields of every trainer.

    Attributes:
        tokens_seen: Tokens that fine-tuning has trained on.
        position: Pass over a dataset without a length, and the place in it.
        rewards_seen: Sum and number of the rewards of labelled answers.
        drawn: Prompts drawn.
        num_completions: Completions sampled.
        num_effective_prompts: Prompts whose completions had different rewards.
        passes: Correct completions and all completions of each prompt.
        step: Micro-batches done.
        rollouts: Rollouts done.
        micro_batches: The rollout that is not finished, None if there is none.
        tokens: Trained tokens of that rollout.
        rows: Mean number of completions of its micro-batches.
        past: Weights before the last optimizer steps.
        completions: Rows of the completion log.
        old_kl_coef: Weight of the KL from the policy that sampled.
        moved: Sums and counts of that KL.
    """

    tokens_seen: float
    position: tuple[int, int] | None
    rewards_seen: tuple[float, float]
    drawn: int
    num_completions: int
    num_effective_prompts: int
    passes: dict[int, tuple[int, int]]
    step: int
    rollouts: int
    micro_batches: list[Batch] | None
    tokens: Tensor | None
    rows: Tensor | None
    past: list[Weights]
    completions: LogState
    old_kl_coef: float
    moved: list[Tensor]


class SavedState(ProcessState):
    """State of one process in a checkpoint, with metrics and sums of losses since the last log."""

    metrics: Required[dict[str, list[float]]]
    loss: Required[float]
    total_loss: Required[float]
    logged: Required[int]


class ResumableTrainer(PublishedTrainer):
    """Trainer that logs the same numbers after a resume as without an interruption.

    Its checkpoints hold the metrics since the last log and the sums behind `loss` and `train_loss`;
    a subclass adds the state that its next step depends on.
    """

    UNCALLED: ClassVar[Mapping[str, str]] = {}  # see `refuse_uncalled`
    phases: Phases
    _metrics: dict[str, defaultdict[str, list[float]]]

    def __init_subclass__(cls, **keywords: object):
        super().__init_subclass__(**keywords)
        refuse_uncalled(cls, cls.UNCALLED)

    def __init__(
        self,
        *,
        args: BaseConfig,
        callbacks: list[TrainerCallback],
        **rest: Unpack[TrainerArguments],
    ):
        self._resumed: SavedState | None = None
        super().__init__(args=args, callbacks=[LossCallback(self), *callbacks], **rest)

    def train(self, *args: Any, **keywords: Any) -> TrainOutput:
        """Train as transformers does, with the settings that the trainer was built with."""
        refuse_uncalled(self, self.UNCALLED)  # put on the class or on this object since
        cast(BaseConfig, self.args).refuse_late()
        return super().train(*args, **keywords)

    def set_initial_training_values(
        self, args: TrainingArguments, dataloader: DataLoader
    ) -> tuple[int, int, int, int, int, int | None, int]:
        """Count steps and epochs as transformers does.

        Raises:
            BadValue: an epoch has no batch.
        """
        loader: object = dataloader  # of a dataset with a length, or without
        if has_length(loader) and not len(loader):
            raise BadValue(self.empty_epoch(len(cast(Sized, dataloader.dataset))))
        return super().set_initial_training_values(args, dataloader)

    def empty_epoch(self, rows: int) -> str:
        """Return the error of an epoch without a batch: its rows, and what to change."""
        return (
            f"train_dataset has {rows} rows, which fill no batch: add rows, lower "
            "per_device_train_batch_size, or leave dataloader_drop_last out"
        )

    def _run_epoch(self, *args: object, **keywords: object) -> None:
        """Train an epoch, unless the last step was taken before the checkpoint was written.

        transformers checks `max_steps` only after a step, and would take one more.
        """
        if self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
            return
        super()._run_epoch(*args, **keywords)

    def own_state(self) -> ProcessState:
        """Return what this process needs to resume: tensors and plain Python values."""
        return {}

    def take_state(self, state: ProcessState) -> None:
        """Restore what `own_state` returned; the state is empty at the start of a run."""

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state: SavedState = {
            "metrics": dict(self._metrics["train"]),
            "loss": self._tr_loss.item(),
            "total_loss": self._total_loss_scalar,
            "logged": self._globalstep_last_logged,
            **self.own_state(),
        }
        save_state(Path(output_dir), state, self.args.process_index)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        state = load_state(Path(checkpoint), self.args.process_index) if checkpoint else None
        self._resumed = state
        self._metrics["train"] = defaultdict(list, state["metrics"] if state else {})
        self.take_state(state or {})

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log with `train_loss` as the mean over all steps, also those before a resume."""
        if "train_loss" in logs:
            logs["train_loss"] = self._total_loss_scalar / max(self.state.global_step, 1)
        super().log(logs, start_time)


class LossCallback(TrainerCallback):
    """Callback that restores the sums of losses, which transformers resets when training begins."""

    def __init__(self, trainer: ResumableTrainer):
        self.trainer = trainer

    def on_train_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,  # noqa: ARG002
        control: TrainerControl,  # noqa: ARG002
        **_: object,
    ) -> None:
        """Restore the sums of the checkpoint."""
        trainer, resumed = self.trainer, self.trainer._resumed
        if resumed:
            trainer._tr_loss += resumed["loss"]
            trainer._total_loss_scalar = resumed["total_loss"]
            trainer._globalstep_last_logged = resumed["logged"]
            trainer._resumed = None


def save_state(folder: Path, state: SavedState, rank: int) -> None:
    """Write the state of one process: pending micro-batches, counters and metrics."""
    folder.mkdir(parents=True, exist_ok=True)  # a process may come before the one that makes it
    torch.save(dict(state), state_file(folder, rank))


def load_state(folder: Path, rank: int) -> SavedState | None:
    """Return the state of one process, None if the checkpoint has none.

    Raises:
        DamagedFile: the file is truncated or altered.
    """
    path = state_file(folder, rank)
    if not path.exists():
        return None
    try:
        return torch.load(path, weights_only=True)
    except Exception as error:  # torch raises many kinds on a damaged file
        raise DamagedFile(
            f"{path}: not the state of a rollout ({error}); continue from an earlier checkpoint"
        ) from error


def state_file(folder: Path, rank: int) -> Path:
    """Return the path of a process's state file."""
    return folder / (STATE if rank == 0 else f"{rank}_{STATE}")


def save_reference(folder: Path, reference: nn.Module) -> None:
    """Write a reference that has moved since the start."""
    save_model(reference, str(folder / REFERENCE))


def load_reference(folder: Path, reference: nn.Module, frame: nn.Module | None) -> None:
    """Restore a moved reference if the checkpoint has one; see `gather_weights` for `frame`."""
    path = folder / REFERENCE
    if not path.exists():
        return
    with gather_weights(reference, frame) as loaded:
        load_model(loaded, str(path))
        if loaded is not reference:
            mix_into(reference, loaded, alpha=1.0)
