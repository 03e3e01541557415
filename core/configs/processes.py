"""FSDP and DeepSpeed on CPUs, which accelerate would silently leave out."""

import os

FSDP, DEEPSPEED = "ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"  # set by `accelerate launch`


def is_set(name: str) -> bool:
    """Return whether an environment variable is "true"."""
    return os.environ.get(name, "").lower() == "true"


def asks_for_shards() -> bool:
    """Return whether the launcher asked for FSDP or DeepSpeed."""
    return is_set(FSDP) or is_set(DEEPSPEED)


def join_on_cpu() -> None:
    """Join the other processes over gloo, so that accelerate shards the model on CPUs too.

    Accelerate enables FSDP and DeepSpeed for accelerator devices only. On CPUs it would silently
    train replicas.
    """
    import torch
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    if is_set(DEEPSPEED):
        os.environ["DS_ACCELERATOR"] = "cpu"
        from deepspeed.ops import __compatible_ops__

        __compatible_ops__["deepspeed_shm_comm"] = False  # gloo does; this would be compiled first
    AcceleratorState._reset_state(reset_partial_state=True)  # as transformers does
    state = PartialState(backend="gloo")
    if state.distributed_type is DistributedType.NO and torch.distributed.is_initialized():
        state.distributed_type = DistributedType.MULTI_GPU
