"""Documents that share one row of tokens, none of which may see another."""

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
    model: nn.Module, inputs: Mapping[str, Any], **options: Any
) -> Any:  # Any: of its architecture
    """What a model gives for a batch, documents of a single row attended one by one.

    A row that has positions and no mask holds a document wherever they do not count on. Where the
    model's attention can be handed in, it goes from document to document; otherwise they are
    padded rows for the model, and one again in its logits. Whoever says more of a row than ids and
    positions, as for kernels of FlashAttention, is left to the model.
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
    own = outputs.logits[:, -max(lengths) :]  # not of virtual tokens
    kept = [rows[:length] for rows, length in zip(own, lengths, strict=True)]
    outputs.logits = torch.cat(kept).unsqueeze(0)
    return outputs


def document_lengths(positions: Tensor) -> list[int]:
    """The lengths of the documents in a row with these positions (N,)."""
    breaks = (positions.diff() != 1).nonzero()[:, 0] + 1
    return [end - start for start, end in pairwise([0, *breaks.tolist(), len(positions)])]


def goes_by_segments(model: nn.Module) -> bool:
    """Whether the model inside what distributes, compiles or adapts it takes segments."""
    for module in model.modules():
        if has_virtual_tokens(module):  # which stand before rows, not before segments
            return False
        if isinstance(module, PreTrainedModel):
            return takes_segments(module)
    return False


def by_document(ids: Tensor, positions: Tensor, lengths: list[int]) -> dict[str, Tensor]:
    """Documents of a row as padded rows; positions too, if they do not count from 0."""
    parts = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "position_ids": positions}
    cut = {
        key: pad_sequence(list(part.split(lengths)), batch_first=True)
        for key, part in parts.items()
    }
    if not cut["position_ids"][:, 0].any():
        del cut["position_ids"]  # as of any padded rows; not every model takes them
    return cut
