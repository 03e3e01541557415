"""LoRA adapters in a rollout: their layers' weights as one, without touching the model's own."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

LORA = ("peft.tuners.lora.layer", "Linear")  # by name: peft may not be installed


def inner(model: Any) -> PreTrainedModel:  # Any: a model, or what peft has wrapped around it
    """The model itself, in whose layers the adapters are."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def is_linear(layer: Any) -> bool:  # Any: a module of any class
    """Whether a layer is x W + b and no more, `linear_weight` being W.

    True for a linear layer, and for one with LoRA adapters (arXiv 2106.09685) of its own type,
    without a bias or a variant such as DoRA, and not merged into it.
    """
    if (type(layer).__module__, type(layer).__name__) != LORA:
        return type(layer) is nn.Linear
    return (
        type(layer.base_layer) is nn.Linear
        and not (layer.merged or layer.lora_variant or any(layer.lora_bias.values()))
        and all(weight.dtype == torch.float32 for weight in layer.parameters())
    )


def linear_weight(layer: Any) -> Tensor:  # Any: a linear layer, or any that peft has wrapped
    """W + sum of s B A over the adapters that are on, outside of autocast."""
    if type(layer) is nn.Linear:
        return layer.weight
    weight = layer.base_layer.weight
    with torch.autocast(weight.device.type, enabled=False):
        for name in adapters_on(layer):
            weight = weight + layer.get_delta_weight(name)
    return weight


def adapters_on(layer: Any) -> list[str]:  # Any: a layer that peft has wrapped
    """The names of the adapters of LoRA that add something, be it to an embedding."""
    names = [] if layer.disable_adapters else layer.active_adapters
    return [name for name in names if name in getattr(layer, "scaling", ())]


def is_adapted(model: nn.Module) -> bool:
    """Whether adapters of any layer are on."""
    return any(adapters_on(m) for m in model.modules() if hasattr(m, "disable_adapters"))
