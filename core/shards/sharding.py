"""Weights that are sharded over processes: detecting, gathering and spreading them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

Model = TypeVar("Model", bound=nn.Module)


def shards_weights(accelerator: Accelerator) -> bool:
    """Return whether training will shard the weights over the processes."""
    plugin = getattr(accelerator.state, "deepspeed_plugin", None)
    stage = 0 if plugin is None else plugin.zero_stage
    return accelerator.distributed_type is DistributedType.FSDP or stage == 3


def is_sharded(model: nn.Module) -> bool:
    """Return whether a process has only parts of the weights (FSDP2, ZeRO-3, `spread_weights`)."""
    return any(isinstance(p, DTensor) or hasattr(p, "ds_id") for p in model.parameters())


def without_weights(model: Model) -> Model:
    """Copy a model that is not sharded yet, without its weights: the frame to gather them in."""
    memo = {id(p): nn.Parameter(p.new_empty(0), requires_grad=False) for p in model.parameters()}
    return deepcopy(model, memo).eval()


@contextmanager
def gather_weights(model: Model, frame: Model | None) -> Iterator[Model]:
    """Yield the model with all weights on this process, callable without the other processes.

    It is the model itself, or for a sharded model `frame`, which holds the weights within the
    block. All processes have to enter the block together.
    """
    if frame is None or not is_sharded(model):
        yield model
        return
    pairs = list(zip(frame.parameters(), model.parameters(), strict=True))
    with gather_by_deepspeed(model):
        for place, weight in pairs:
            place.data = full_tensor(weight.detach())
        frame.to(pairs[0][0].device)
        try:
            yield frame
        finally:
            for place, _ in pairs:
                place.data = place.new_empty(0)


def gather_by_deepspeed(model: nn.Module) -> AbstractContextManager[None]:
    """Return ZeRO-3's context in which its weights are whole; a null context for other models."""
    parameters = [p for p in model.parameters() if hasattr(p, "ds_id")]
    if not parameters:
        return nullcontext()
    from deepspeed import zero  # an extra

    return zero.GatheredParameters(parameters)


def full_tensor(tensor: Tensor) -> Tensor:
    """Gather a tensor from its shards on all processes; a plain tensor is unchanged."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def spread_weights(model: nn.Module, device: torch.device) -> None:
    """Keep 1 / N of each weight of a whole, frozen model on each of N processes, in place."""
    mesh = world_mesh(device)
    parts: dict[nn.Parameter, nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if weight not in parts:
                part = distribute_tensor(weight.detach().to(device), mesh, [Shard(0)])
                parts[weight] = nn.Parameter(part, requires_grad=False)
            setattr(module, name, parts[weight])


def world_mesh(device: torch.device) -> DeviceMesh:
    """Return the one-dimensional device mesh of all processes."""
    return DeviceMesh(device.type, torch.arange(torch.distributed.get_world_size()))


def shard_like(tensor: Tensor, template: Tensor) -> Tensor:
    """Shard a whole tensor like `template`, or move it to the device of a plain `template`."""
    if not isinstance(template, DTensor):
        return tensor.to(template.device)
    return distribute_tensor(tensor, template.device_mesh, template.placements, src_data_rank=None)
