"""A head that computes in 32 bits, whatever the type of the model and of autocast."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from eval.errors import BadValue


def widened(x: Tensor) -> Tensor:
    """In 32 bits or more."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class WideHead(nn.Linear):
    """The weight keeps its type, and is widened where it is multiplied; arXiv 2510.13786."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Logits in 32 bits or more."""
        bias = None if self.bias is None else widened(self.bias)
        with torch.autocast(input.device.type, enabled=False):
            return linear(widened(input), widened(self.weight), bias)


def widen_head(model: Any) -> None:  # Any: a model, or what peft has wrapped around it
    """Let the head of a model be such a one, in place.

    Raises:
        BadValue: its head is another thing than a linear layer, as with adapters in it.
    """
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise BadValue(
            f"cast_lm_head_to_fp32=True: the head is a {type(head).__name__}, expected a linear "
            "layer without adapters"
        )
    head.__class__ = WideHead
