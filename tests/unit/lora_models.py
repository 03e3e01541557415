"""Tiny models with LoRA adapters that do something."""

import torch
from peft import LoraConfig, get_peft_model


def lora(**changes):
    settings = {"r": 4, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    return LoraConfig(**settings | changes)


def stirred(model, scale=0.3):
    """The model with adapters that do something: both factors random."""
    random = torch.Generator().manual_seed(3)
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data = scale * torch.randn(weight.shape, generator=random)
    return model


def adapted(build_llama, **changes):
    return stirred(get_peft_model(build_llama(seed=1), lora(**changes))).eval()
