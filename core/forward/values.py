"""What a value model expects of each state of a completion: a language model with one number."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.logps import completion_outputs, evaluating, flush_left, read_packed
from core.forward.micro_pieces import take
from core.forward.packing import pack, packs


def value_model(policy: PreTrainedModel) -> PreTrainedModel:
    """A copy of a policy whose head gives one number for each token, at first 0."""
    model = deepcopy(policy)
    width: Any = model.get_output_embeddings()  # Any: an nn.Linear
    weight = width.weight
    head = nn.Linear(weight.size(1), 1, bias=False, device=weight.device, dtype=weight.dtype)
    nn.init.zeros_(head.weight)
    model.set_output_embeddings(head)
    return model.requires_grad_(True)


def token_values(model: PreTrainedModel, batch: Batch) -> Tensor:
    """V(s_t) of each completion token (B, T), s_t being all before it; 0 on padding."""
    mask = batch["completion_mask"].bool()
    if packs(model, batch):
        head: Any = model.get_output_embeddings()  # Any: an nn.Linear

        def read(hidden: Tensor) -> tuple[Tensor, ...]:
            return ((hidden[0] @ head.weight.T)[:, 0],)

        (values,) = read_packed(model, model, batch, pack(batch), read)
        return in_full(values)
    rows = flush_left(batch)
    found = completion_outputs(model, rows, with_router=False).logits[..., 0]
    return rows.at_tokens(in_full(found), mask)


def in_full(values: Tensor) -> Tensor:
    """In 32 bits or more."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


@torch.no_grad()
def frozen_values(model: PreTrainedModel, batch: Batch, pieces: Sequence[Sequence[int]]) -> Tensor:
    """The same without gradient or dropout, some rows at a time."""
    with evaluating(model):
        parts = [token_values(model, take(batch, rows)) for rows in pieces]
    order = torch.tensor([row for rows in pieces for row in rows])
    return torch.cat(parts)[order.argsort().to(parts[0].device)]
