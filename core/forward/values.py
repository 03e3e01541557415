"""Values of the states of a completion, from a language model with a scalar head."""

from collections.abc import Sequence
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.logps import completion_outputs, evaluating, flush_left, read_packed
from core.forward.micro_pieces import take
from core.forward.packing import can_pack, pack


def value_model(policy: PreTrainedModel) -> PreTrainedModel:
    """Copy a policy and replace its head by one that returns one number per token, initially 0."""
    model = deepcopy(policy)
    weight = cast(nn.Linear, model.get_output_embeddings()).weight
    head = nn.Linear(weight.size(1), 1, bias=False, device=weight.device, dtype=weight.dtype)
    nn.init.zeros_(head.weight)
    model.set_output_embeddings(head)
    return model.requires_grad_(True)


def token_values(model: PreTrainedModel, batch: Batch) -> Tensor:
    """Return V(s_t) of each completion token (B, T), where s_t is all before it; 0 on padding."""
    mask = batch["completion_mask"].bool()
    if can_pack(model, batch):
        head = cast(nn.Linear, model.get_output_embeddings())

        def head_outputs(hidden: Tensor) -> tuple[Tensor, ...]:
            return ((hidden[0] @ head.weight.T)[:, 0],)

        (values,) = read_packed(model, model, batch, pack(batch), head_outputs)
        return to_full_precision(values)
    rows = flush_left(batch)
    values_of_rows = completion_outputs(model, rows, with_router=False).logits[..., 0]
    return rows.at_tokens(to_full_precision(values_of_rows), mask)


def to_full_precision(values: Tensor) -> Tensor:
    """Cast to 32 bits unless the dtype is wider."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


@torch.no_grad()
def frozen_values(model: PreTrainedModel, batch: Batch, pieces: Sequence[Sequence[int]]) -> Tensor:
    """Return `token_values` without gradient or dropout, computed piece by piece."""
    with evaluating(model):
        parts = [token_values(model, take(batch, rows)) for rows in pieces]
    order = torch.tensor([row for rows in pieces for row in rows])
    return torch.cat(parts)[order.argsort().to(parts[0].device)]
