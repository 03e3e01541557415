"""Movement of LoRA adapters during a training: of their products, and of DoRA's magnitudes."""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

UPDATE_NORM, MAGNITUDE_CHANGE = "adapters/update_norm", "adapters/magnitude_change"


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
    one. Trainings with several processes log neither, as each process may hold a part of a matrix.
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
        control: TrainerControl,  # noqa: ARG002 - the caller's signature
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
            norms = layer.base_layer.weight.norm(dim=1)
            yield (layer.lora_magnitude_vector[name].weight / norms - 1).abs()
