"""Movement of adapted weights during a training: of LoRA's products, of lengths and directions."""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.pytorch_utils import Conv1D

UPDATE_NORM, MAGNITUDE_CHANGE = "adapters/update_norm", "adapters/magnitude_change"
CORRELATION = "adapters/length_direction_correlation"


class Factors(NamedTuple):
    """The factors of an adapter, and the factor of their product."""

    down: Tensor  # A, of shape (r, in)
    up: Tensor  # B, of shape (out, r)
    scale: float


class AdapterCallback(TrainerCallback):
    """Callback that adds to the trainer's metrics how far each optimizer step moves the adapters.

    `adapters/update_norm` is the norm of the change of s B A in a step, over all adapted matrices
    together, and with DoRA `adapters/magnitude_change` the mean of |m / ||W|| - 1| after it, where
    ||W|| is the norm of the frozen row. A logged value is the mean over the steps since the last
    one.

    `adapters/length_direction_correlation` is measured at the logged step alone: over the adapted
    matrices, how the mean change of the length of a row goes with the mean change of its direction
    since the start (see `movements`). It has no value where either is equal in all of them.

    Trainings with several processes log none, as each process may hold a part of a matrix.
    """

    def __init__(self) -> None:
        self.trainer: Any = None  # Any: a transformers.Trainer, known only after it took callbacks
        self._before: list[Factors] = []

    def on_step_begin(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,  # noqa: ARG002 - the caller's signature
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
        **_: object,
    ) -> None:
        """Copy the factors before the first step of a training or after a resume."""
        if not self._before and self.trainer.accelerator.num_processes == 1:
            self._before = [*factors(self.trainer.model)]

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the caller's signature
        state: TrainerState,  # noqa: ARG002 - the caller's signature
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Add the movement of this step to the metrics."""
        if not self._before:
            return
        metrics, after = self.trainer._metrics["train"], [*factors(self.trainer.model)]
        squares = [change_squared(*both) for both in zip(self._before, after, strict=True)]
        metrics[UPDATE_NORM].append(sqrt(sum(squares)))
        if changes := [*magnitude_changes(self.trainer.model)]:
            metrics[MAGNITUDE_CHANGE].append(torch.cat(changes).mean().item())
        if control.should_log:
            correlation = torch.corrcoef(torch.tensor([*movements(self.trainer.model)]).T)[0, 1]
            if correlation.isfinite():
                metrics[CORRELATION].append(correlation.item())
        self._before = after


def linear_adapters(model: nn.Module) -> Iterator[tuple[Any, str]]:  # Any: a layer of peft
    """Yield each layer with LoRA's factors, and the name of each adapter on it."""
    for layer in model.modules():
        for name in getattr(layer, "lora_A", ()):
            yield layer, name


@torch.no_grad()
def factors(model: nn.Module) -> Iterator[Factors]:
    """Yield copies of the factors of all adapters."""
    for layer, name in linear_adapters(model):
        down, up = layer.lora_A[name].weight, layer.lora_B[name].weight
        yield Factors(down.clone(), up.clone(), layer.scaling[name])


def change_squared(before: Factors, after: Factors) -> float:
    """Return ||s B' A' - s B A||^2, without a matrix of the size of the weight.

    The scalar product of B A and B' A' is the sum of the entries of (B^T B') * (A A'^T).
    """

    def product(one: Factors, other: Factors) -> float:
        ups, downs = (
            one.up.double().T @ other.up.double(),
            one.down.double() @ other.down.double().T,
        )
        return (ups * downs).sum().item()

    change = product(after, after) + product(before, before) - 2 * product(before, after)
    return before.scale**2 * max(0.0, change)


@torch.no_grad()
def magnitude_changes(model: nn.Module) -> Iterator[Tensor]:
    """Yield |m / ||W|| - 1| of each row of the matrices that DoRA adapts."""
    for layer, name in linear_adapters(model):
        if name in layer.lora_magnitude_vector:
            norms = by_output(layer, layer.base_layer.weight).norm(dim=1)
            yield (layer.lora_magnitude_vector[name].weight / norms - 1).abs()


@torch.no_grad()
def movements(model: nn.Module) -> Iterator[tuple[float, float]]:
    """Yield how far the lengths and the directions of each adapted matrix are from its start.

    The first number is the mean over rows of | ||w'|| - ||w|| |, the second that of 1 - cos(w', w),
    where w is a row of the frozen matrix and w' of the adapted one. A row is one output, and with
    DoRA its length is the trained magnitude (DoRA, s3.2, which takes columns of a matrix that is
    written the other way).
    """
    for layer, name in linear_adapters(model):
        if isinstance(layer.base_layer, nn.Linear | Conv1D):  # not experts in one parameter
            start = by_output(layer, layer.base_layer.weight).double()
            moved = start + by_output(layer, layer.get_delta_weight(name)).double()
            norms, lengths = start.norm(dim=1), moved.norm(dim=1)
            cosines = (start * moved).sum(1) / (norms * lengths)
            if name in layer.lora_magnitude_vector:
                lengths = layer.lora_magnitude_vector[name].weight.double()
            yield (lengths - norms).abs().mean().item(), (1 - cosines).mean().item()


def by_output(layer: Any, weight: Any) -> Any:  # Any: a layer of peft, a half-typed tensor
    """Return a weight of the shape of a layer's as (out, in): GPT-2 keeps them as (in, out)."""
    return weight.T if isinstance(layer.base_layer, Conv1D) else weight
