"""Output head that computes in float32 regardless of the model's dtype and of autocast."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from eval.errors import BadValue


def upcast(x: Tensor) -> Tensor:
    """Return a tensor in float32, or unchanged if its dtype is wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class WideHead(nn.Linear):
    """Linear layer that keeps its weight's dtype and multiplies in float32; arXiv 2510.13786."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Return the logits in float32 or wider."""
        bias = None if self.bias is None else upcast(self.bias)
        with torch.autocast(input.device.type, enabled=False):
            return linear(upcast(input), upcast(self.weight), bias)


def widen_head(model: Any) -> None:  # Any: a model, or what peft has wrapped around it
    """Make the output head of a model a `WideHead`, in place.

    Raises:
        BadValue: the head is not a plain `nn.Linear`, as with adapters in it.
    """
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise BadValue(
            f"cast_lm_head_to_fp32=True: the head is a {type(head).__name__}, expected a linear "
            "layer without adapters"
        )
    head.__class__ = WideHead
