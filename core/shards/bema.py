"""Callback that averages the trained weights, with the interface of TRL's `BEMACallback`."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import cast

import torch
from accelerate.utils import extract_model_from_parallel
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.utils import logging

from core.configs.weight_schedule import BEMASchedule
from core.shards.sharding import full_tensor, gather_by_deepspeed
from core.shards.weight_average import WeightAverage
from eval.errors import BadValue, DamagedFile, MissingFile

logger = logging.get_logger(__name__)

STATE = "bema.safetensors"  # of the averages, in a checkpoint
PARTS = ("start", "ema", "bema")


class BEMACallback(TrainerCallback):
    """Callback that averages weights as `BEMASchedule` says, and saves the average at the end.

    The average of the trainable weights, with all other weights as they are, is written as a model
    into the folder `bema` of `output_dir`; of a model with adapters, these alone are averaged and
    written. A training without an update writes no such folder. Training itself is not changed.

    Checkpoints hold the averages in `bema.safetensors`. A resumed training continues them from
    there: the checkpoint is `resume_from_checkpoint` of the training arguments if that is a folder
    with averages, else that of its step in `output_dir`.

    The main process keeps three copies of the trainable weights on `device`, in 32 bits or more.

    Attributes:
        saved: The parts of an average that are written, each into the folder of its name.

    Raises:
        BadValue: a number is out of range, or `device` is no device.
    """

    saved: tuple[str, ...] = ("bema",)

    def __init__(
        self,
        update_freq: int = 400,
        ema_power: float = 0.5,
        bias_power: float = 0.2,
        lag: int = 10,
        update_after: int = 0,
        multiplier: float = 1.0,
        min_ema_multiplier: float = 0.0,
        device: str = "cpu",
    ):
        self.schedule = BEMASchedule(
            update_freq=update_freq,
            ema_power=ema_power,
            bias_power=bias_power,
            lag=lag,
            update_after=update_after,
            multiplier=multiplier,
            min_ema_multiplier=min_ema_multiplier,
        )
        try:
            self.device = torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise BadValue(
                f"BEMACallback(device={device!r}): expected a device, such as 'cpu' or 'cuda'"
            ) from error
        self.averages: dict[str, WeightAverage] = {}  # by parameter, on the main process

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        *,
        model: nn.Module,
        **_: object,
    ) -> None:
        """Start the averages at the weights, or continue those of the checkpoint.

        Raises:
            MissingFile: the checkpoint that the training resumes from has no averages.
            DamagedFile: its averages cannot be read, or are of other weights.
        """
        self.averages = {}
        step, first = state.global_step, self.schedule.update_after
        if step == first:
            self.start(model, state)
        elif step > first and state.is_world_process_zero:
            self.averages = load_averages(state_file(args, step), model, self.device)

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        *,
        model: nn.Module,
        **_: object,
    ) -> None:
        """Add the weights to the averages if this step is one of the schedule."""
        step = state.global_step
        if step == self.schedule.update_after:
            self.start(model, state)
        if not self.schedule.updates_at(step):
            return
        ema_weight, bias_weight = self.schedule.ema_weight(step), self.schedule.bias_weight(step)
        for name, weight in trained_weights(model):
            if state.is_world_process_zero:
                self.averages[name].update(weight, ema_weight=ema_weight, bias_weight=bias_weight)

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Write the averages into the checkpoint of this step."""
        if not self.averages or args.save_only_model:
            return
        tensors = {
            f"{part}.{name}": getattr(average, part)
            for name, average in self.averages.items()
            for part in PARTS
        }
        save_file(tensors, checkpoint(args, state.global_step) / STATE)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        *,
        model: nn.Module,
        **_: object,
    ) -> None:
        """Write the averaged models, unless there was no update."""
        updates = self.schedule.updates_until(state.global_step)
        if not updates:
            logger.warning(
                f"BEMA: no average was saved, for {state.global_step} steps have no update: lower "
                f"update_freq={self.schedule.update_freq} or update_after="
                f"{self.schedule.update_after}"
            )
            return
        policy = unwrapped(model)
        with gather_by_deepspeed(policy):
            whole = {name: full_tensor(weight) for name, weight in policy.state_dict().items()}
        for part in self.saved if state.is_world_process_zero else ():
            folder = Path(str(args.output_dir)) / part
            policy.save_pretrained(folder, state_dict=whole | self.weights(policy, part))
            logger.info(f"BEMA: saved the average of {updates} updates in {folder}")

    def weights(self, model: PreTrainedModel, part: str) -> dict[str, Tensor]:
        """Return averaged weights by their names in the model, tied ones by all their names."""
        first_names = {id(weight): name for name, weight in model.named_parameters()}
        return {
            name: getattr(self.averages[first_names[id(weight)]], part).to(weight.dtype)
            for name, weight in model.named_parameters(remove_duplicate=False)
            if first_names[id(weight)] in self.averages
        }

    def start(self, model: nn.Module, state: TrainerState) -> None:
        """Start the averages at the weights of the model."""
        for name, weight in trained_weights(model):
            if state.is_world_process_zero:
                self.averages[name] = WeightAverage.of(weight, self.device)


class SavedAverages(BEMACallback):
    """Callback that saves the moving average of the weights and the corrected one.

    Raises:
        BadValue: the training has no update; as soon as its number of steps is known.
    """

    saved = ("ema", "bema")

    def __init__(self, schedule: BEMASchedule):
        super().__init__(**asdict(schedule))

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        *,
        model: nn.Module,
        **others: object,
    ) -> None:
        """Start or continue the averages of a training that has updates."""
        self.schedule.check_steps(state.max_steps)
        super().on_train_begin(args, state, control, model=model, **others)

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        *,
        model: nn.Module,
        **others: object,
    ) -> None:
        """Write the averaged models, unless the training was stopped before an update."""
        self.schedule.check_steps(state.global_step)
        super().on_train_end(args, state, control, model=model, **others)


def unwrapped(model: nn.Module) -> PreTrainedModel:
    """Return the model without wrappers of distributed training."""
    return cast(PreTrainedModel, extract_model_from_parallel(model))


def trained_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the trainable weights by name, gathered from all processes, which enter together."""
    policy = unwrapped(model)
    with gather_by_deepspeed(policy):
        for name, weight in policy.named_parameters():
            if weight.requires_grad:
                yield name, full_tensor(weight.detach())


def checkpoint(args: TrainingArguments, step: int) -> Path:
    """Return the folder of the checkpoint that this training writes after a step."""
    return Path(str(args.output_dir)) / f"checkpoint-{step}"


def state_file(args: TrainingArguments, step: int) -> Path:
    """Return the file of the averages in the checkpoint that a training resumes from.

    Raises:
        MissingFile: there is none.
    """
    folders = [checkpoint(args, step)]
    if args.resume_from_checkpoint:
        folders.insert(0, Path(args.resume_from_checkpoint))
    for folder in folders:
        if (folder / STATE).is_file():
            return folder / STATE
    raise MissingFile(
        f"BEMA: no {STATE} in {' or '.join(map(str, folders))}: expected the averages of the "
        f"first {step} steps; resume from a checkpoint of a training with BEMACallback, and give "
        "one outside output_dir as resume_from_checkpoint of the training arguments too"
    )


def load_averages(path: Path, model: nn.Module, device: torch.device) -> dict[str, WeightAverage]:
    """Return the averages in a file by the names of their weights.

    Raises:
        DamagedFile: the file is truncated or altered, or has other weights than the trained ones.
    """
    try:
        tensors = load_file(path, device=str(device))
    except (SafetensorError, OSError) as error:
        raise DamagedFile(f"{path}: no averages of BEMA ({error}): take another one") from error
    shapes = {
        f"{part}.{name}": weight.shape
        for name, weight in unwrapped(model).named_parameters()
        for part in PARTS
        if weight.requires_grad
    }
    if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
        raise DamagedFile(
            f"{path}: averages of other weights than the {len(shapes) // 3} trained ones: resume "
            "from a checkpoint of the same model"
        )
    names = [name.removeprefix("ema.") for name in tensors if name.startswith("ema.")]
    return {
        name: WeightAverage(**{part: tensors[f"{part}.{name}"] for part in PARTS}) for name in names
    }
