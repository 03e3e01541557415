"""Weights that are spread over the processes: told apart, gathered, and kept in parts."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

Model = TypeVar("Model", bound=nn.Module)


def shards_weights(accelerator: Accelerator) -> bool:
    """Whether training will spread the weights over the processes."""
    plugin = getattr(accelerator.state, "deepspeed_plugin", None)
    stage = 0 if plugin is None else plugin.zero_stage
    return accelerator.distributed_type is DistributedType.FSDP or stage == 3


def is_sharded(model: nn.Module) -> bool:
    """Whether a process holds parts of the weights only, by FSDP2, ZeRO-3 or `spread`."""
    return any(isinstance(p, DTensor) or hasattr(p, "ds_id") for p in model.parameters())


def without_weights(model: Model) -> Model:
    """A copy of a model that is not sharded yet, without weights: the frame to gather them in."""
    memo = {id(p): nn.Parameter(p.new_empty(0), requires_grad=False) for p in model.parameters()}
    return deepcopy(model, memo).eval()


@contextmanager
def gathered(model: Model, frame: Model | None) -> Iterator[Model]:
    """The model with all weights on this process, callable without the other processes.

    That is the model itself, or if it is sharded `frame`, which holds the weights inside of the
    `with` block. All processes enter together.
    """
    if frame is None or not is_sharded(model):
        yield model
        return
    pairs = list(zip(frame.parameters(), model.parameters(), strict=True))
    with gathered_by_deepspeed(model):
        for place, weight in pairs:
            place.data = full(weight.detach())
        frame.to(pairs[0][0].device)
        try:
            yield frame
        finally:
            for place, _ in pairs:
                place.data = place.new_empty(0)


def gathered_by_deepspeed(model: nn.Module) -> AbstractContextManager[None]:
    """ZeRO-3's own context in which its weights are whole; nothing for other models."""
    parameters = [p for p in model.parameters() if hasattr(p, "ds_id")]
    if not parameters:
        return nullcontext()
    from deepspeed import zero  # an extra

    return zero.GatheredParameters(parameters)


def full(tensor: Tensor) -> Tensor:
    """A tensor gathered from its parts on all processes."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def spread(model: nn.Module, device: torch.device) -> None:
    """Keep 1 / N of each weight of a whole, frozen model on each of N processes, in place."""
    mesh = world(device)
    parts: dict[nn.Parameter, nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if weight not in parts:
                part = distribute_tensor(weight.detach().to(device), mesh, [Shard(0)])
                parts[weight] = nn.Parameter(part, requires_grad=False)
            setattr(module, name, parts[weight])


def world(device: torch.device) -> DeviceMesh:
    """All processes in a row."""
    return DeviceMesh(device.type, torch.arange(torch.distributed.get_world_size()))


def like(tensor: Tensor, kept: Any) -> Tensor:  # Any: pyright takes a DTensor for its parts
    """A whole tensor, cut as `kept` is."""
    if not isinstance(kept, DTensor):
        return tensor.to(kept.device)
    return distribute_tensor(tensor, kept.device_mesh, kept.placements, src_data_rank=None)
