"""Checks of what wraps a model's modules: hooks, autocast and sharding."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

# Hooks of transformers and peft on embeddings, for gradient checkpointing and adapters.
ASKS_FOR_GRADIENT = ("make_inputs_require_grads", "make_inputs_require_grad")


def is_hooked(model: nn.Module) -> bool:
    """Return whether hooks change a forward pass without gradients."""
    return any(
        hasattr(module, "_hf_hook")  # accelerate's, for a model in several places
        or not all(map(asks_for_gradient, hooks_of(module)))
        for module in model.modules()
    )


def hooks_of(module: nn.Module) -> list[Callable[..., object]]:
    """Return the forward hooks and forward pre-hooks of one module."""
    return [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]


def asks_for_gradient(hook: Callable[..., object]) -> bool:
    """Return whether a hook only makes the output of its module require a gradient."""
    owner = str(getattr(hook, "__module__", "")).partition(".")[0]
    return owner in ("transformers", "peft") and hook.__name__ in ASKS_FOR_GRADIENT


def autocast_type(device: torch.device) -> torch.dtype | None:
    """Return the dtype of products under autocast on this device; None outside of autocast."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def has_unsharded_weights(model: nn.Module) -> bool:
    """Return whether this process holds every weight whole."""
    return all(type(p) in (nn.Parameter, Tensor) and p.numel() > 0 for p in model.parameters())
