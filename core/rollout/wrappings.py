"""What may stand around the modules of a model, or be missing in them: hooks, autocast, shards."""

from typing import Any

import torch
from torch import Tensor, nn

# Of transformers and of peft, on embeddings: for gradient checkpointing and for adapters.
ASKS_FOR_GRADIENT = ("make_inputs_require_grads", "make_inputs_require_grad")


def is_hooked(model: nn.Module) -> bool:
    """Whether forward passes without a gradient have hooks that do something."""
    return any(
        hasattr(module, "_hf_hook")  # accelerate's, for a model in several places
        or not all(map(asks_for_gradient, hooks_of(module)))
        for module in model.modules()
    )


def hooks_of(module: nn.Module) -> list[Any]:  # Any: whatever can be called
    """What runs before and after the forward pass of one module."""
    return [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]


def asks_for_gradient(hook: Any) -> bool:
    """Whether a hook lets its module's output have a gradient and does no more."""
    owner = str(getattr(hook, "__module__", "")).partition(".")[0]
    return owner in ("transformers", "peft") and hook.__name__ in ASKS_FOR_GRADIENT


def autocast_type(device: torch.device) -> torch.dtype | None:
    """The type that autocast gives to products; None outside of it."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def has_unsharded_weights(model: nn.Module) -> bool:
    """Whether all weights are on this process, none in parts."""
    return all(type(p) in (nn.Parameter, Tensor) and p.numel() > 0 for p in model.parameters())
