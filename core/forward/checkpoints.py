"""Activation checkpoints that keep the results of attention instead of computing them again."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from core.configs.base import SELECTIVE

ATTENTION = tuple(
    getattr(torch.ops.aten, name).default
    for name in (
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "_flash_attention_forward",
    )
    if hasattr(torch.ops.aten, name)
)


def keep_attention(model: nn.Module) -> None:
    """Let `selective` of the keywords that enable a model's checkpoints be obeyed.

    Checkpoints then keep the results of torch's fused attention; other implementations of
    attention are recomputed.
    """
    newer = "activation_checkpointing"  # transformers has this name from 5.23 on
    name = newer if hasattr(model, f"{newer}_enable") else "gradient_checkpointing"
    enable, keywords = getattr(model, f"{name}_enable"), f"{name}_kwargs"
    contexts = partial(create_selective_checkpoint_contexts, list(ATTENTION))

    def enable_selective(**options: Any) -> None:  # Any: each keyword has its own type
        given = dict(options.get(keywords) or {})
        selective = {"use_reentrant": False, "context_fn": contexts}
        given |= selective if given.pop(SELECTIVE, False) else {}
        enable(**{**options, keywords: given or None})

    setattr(model, f"{name}_enable", enable_selective)
