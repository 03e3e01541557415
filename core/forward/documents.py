"""Forward passes over several documents in one row of tokens that must not attend to each other."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from core.forward.packing import Segments, takes_segments
from core.shards.adapters import has_virtual_tokens


def outputs_of(
    model: nn.Module, inputs: Mapping[str, Tensor], **options: object
) -> Any:  # Any: of its architecture
    """Return the model's outputs for a batch, without attention between documents of a single row.

    A row with positions and without mask begins a new document wherever positions do not increase
    by 1. If the model's attention can be replaced, it is computed document by document. Otherwise
    the model gets the documents as padded rows, and the logits are joined to one row again. Inputs
    with further keys, such as those of FlashAttention kernels, are passed to the model unchanged.
    """
    ids, positions = inputs.get("input_ids"), inputs.get("position_ids")
    if ids is None or positions is None or "attention_mask" in inputs or len(ids) > 1:
        return model(**inputs, use_cache=False, **options)
    lengths = document_lengths(positions[0])
    if goes_by_segments(model):
        segments = Segments(ids, positions, lengths, [None] * len(lengths))
        return model(
            **inputs, attention_mask=segments.no_mask, packed=segments, use_cache=False, **options
        )
    if inputs.keys() != {"input_ids", "position_ids"}:
        return model(**inputs, use_cache=False, **options)
    outputs = model(**by_document(ids[0], positions[0], lengths), use_cache=False, **options)
    logits = outputs.logits[:, -max(lengths) :]  # not of virtual tokens
    documents = [rows[:length] for rows, length in zip(logits, lengths, strict=True)]
    outputs.logits = torch.cat(documents).unsqueeze(0)
    return outputs


def document_lengths(positions: Tensor) -> list[int]:
    """Return the lengths of the documents in a row with positions (N,)."""
    breaks = (positions.diff() != 1).nonzero()[:, 0] + 1
    return [end - start for start, end in pairwise([0, *breaks.tolist(), len(positions)])]


def goes_by_segments(model: nn.Module) -> bool:
    """Return whether a model, perhaps wrapped by DDP, torch.compile or peft, accepts segments."""
    for module in model.modules():
        if has_virtual_tokens(module):  # which stand before rows, not before segments
            return False
        if isinstance(module, PreTrainedModel):
            return takes_segments(module)
    return False


def by_document(ids: Tensor, positions: Tensor, lengths: list[int]) -> dict[str, Tensor]:
    """Split a row into padded rows, one per document.

    The inputs have positions only if those of some document do not begin at 0.
    """
    parts = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": positions}
    inputs = {
        key: pad_sequence(list(part.split(lengths)), batch_first=True)
        for key, part in parts.items()
    }
    if not inputs["position_ids"][:, 0].any():
        del inputs["position_ids"]  # as of any padded rows; not every model takes them
    return inputs
