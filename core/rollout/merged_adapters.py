"""Linear weights with their LoRA adapters added, computed without changing the model."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

LORA = ("peft.tuners.lora.layer", "Linear")  # by name: peft may not be installed


def unwrap_peft(model: Any) -> PreTrainedModel:  # Any: a model, or what peft has wrapped around it
    """Return the transformers model inside a peft model; other models are returned unchanged."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def is_linear(layer: Any) -> bool:  # Any: a module of any class
    """Return whether a layer computes x W + b only, where W is `linear_weight(layer)`.

    True for `nn.Linear`, and for a float32 one with LoRA adapters (arXiv 2106.09685) that are not
    merged, have no bias and are no variant such as DoRA.
    """
    if (type(layer).__module__, type(layer).__name__) != LORA:
        return type(layer) is nn.Linear
    return (
        type(layer.base_layer) is nn.Linear
        and not (layer.merged or layer.lora_variant or any(layer.lora_bias.values()))
        and all(weight.dtype == torch.float32 for weight in layer.parameters())
    )


def linear_weight(layer: Any) -> Tensor:  # Any: a linear layer, or any that peft has wrapped
    """Return W plus the sum of s B A over the active adapters, computed outside of autocast.

    An adapter of DoRA (arXiv 2402.09353) makes V = W + s B A to m V / ||V||, with a norm for each
    row, which is one output of the layer.
    """
    if type(layer) is nn.Linear:
        return layer.weight
    weight = layer.base_layer.weight
    with torch.autocast(weight.device.type, enabled=False):
        for name in adapters_on(layer):
            weight = weight + layer.get_delta_weight(name)
            if name in layer.lora_magnitude_vector:
                norms = weight.norm(dim=1, keepdim=True)
                weight = layer.lora_magnitude_vector[name].weight.unsqueeze(1) * weight / norms
    return weight


def merged_weight(model: nn.Module, name: str) -> Tensor:
    """Return a weight by its name in the model inside a peft model, with its adapters added."""
    path, _, leaf = name.rpartition(".")
    module: Any = unwrap_peft(model).get_submodule(path)  # Any: a module of any class
    if not hasattr(module, "base_layer"):
        return getattr(module, leaf)
    return linear_weight(module) if leaf == "weight" else getattr(module.base_layer, leaf)


def adapters_on(layer: Any) -> list[str]:  # Any: a layer that peft has wrapped
    """Return the names of the active adapters that have weights in this layer."""
    names = [] if layer.disable_adapters else layer.active_adapters
    return [name for name in names if name in getattr(layer, "scaling", ())]


def is_adapted(model: nn.Module) -> bool:
    """Return whether any layer of the model has active adapters."""
    return any(adapters_on(m) for m in model.modules() if hasattr(m, "disable_adapters"))
