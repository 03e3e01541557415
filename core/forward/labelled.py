"""Log-probabilities of labelled tokens, without all logits in memory if the model allows it."""

from collections.abc import Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.data.sft import IGNORED
from core.forward.documents import goes_by_segments, outputs_of
from core.forward.head import chunk_size, head_logps
from core.forward.logps import reading_head, token_entropy
from core.forward.packing import PACKED, has_plain_head
from core.shards.adapters import has_virtual_tokens

INPUTS = {"input_ids", "attention_mask", "position_ids"}


class Labelled(NamedTuple):
    """Log-probabilities (M,) of the labelled tokens of a batch, with the model's outputs.

    Attributes:
        logps: Log-probabilities (M,), with gradient.
        entropy: Entropy of the distribution of each token (M,), without gradient.
        right: 1 if the label was the most likely token, else 0 (M,).
        outputs: What the model returned.
        logits: Logits of the tokens (M, V); None if they were computed in chunks.
    """

    logps: Tensor
    entropy: Tensor
    right: Tensor
    outputs: object
    logits: Tensor | None = None


def labelled_logps(
    model: nn.Module,
    inputs: Mapping[str, Tensor],
    labels: Tensor,
    *,
    with_logits: bool,
    **options: object,
) -> Labelled:
    """Return the log-probabilities of the labelled tokens of a batch (B, T).

    With `with_logits` the outputs have logits. `options` are further arguments of the model.
    """
    mask, targets = labels[:, 1:] != IGNORED, labels[:, 1:][labels[:, 1:] != IGNORED]
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    if policy is None or with_logits or not head_reads_tokens(model, policy, inputs):
        outputs = outputs_of(model, inputs, **options)
        logits = outputs.logits[:, -labels.size(1) : -1]  # not of virtual tokens
        return of_logits(logits[mask], targets, outputs)
    head = cast(nn.Linear, policy.get_output_embeddings())

    def head_outputs(hidden: Tensor) -> tuple[Tensor, ...]:
        states = hidden[:, :-1][mask]
        return head_logps(states, head.weight, targets, 1.0, with_entropy=True, with_right=True)

    with reading_head(policy, head_outputs):
        outputs = outputs_of(model, inputs, **options)
    logps, entropy, right = outputs.logits[0].unbind(-1)
    return Labelled(logps, entropy.detach(), right.detach(), outputs)


def of_logits(raw: Tensor, targets: Tensor, outputs: object) -> Labelled:
    """Compute `Labelled` from the logits (M, V) of the labelled tokens."""
    logits = raw if raw.dtype == torch.float64 else raw.float()
    total = logits.logsumexp(-1)
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    with torch.no_grad():
        entropy, right = token_entropy(logits, total), logits.argmax(-1) == targets
    return Labelled(logps, entropy, right.to(logps.dtype), outputs, logits)


def head_reads_tokens(
    model: nn.Module, policy: PreTrainedModel, inputs: Mapping[str, Tensor]
) -> bool:
    """Return whether the head can work in chunks, and the logits exceed one chunk.

    For fewer logits than a chunk, computing all of them takes no more memory.
    """
    head = cast(nn.Linear, policy.get_output_embeddings())  # with FSDP2 of a subclass
    joined = "attention_mask" not in inputs and "position_ids" in inputs
    return (
        policy.config.model_type in PACKED
        and has_plain_head(policy)
        and inputs.keys() <= INPUTS
        and inputs["input_ids"].numel() * head.out_features > chunk_size(head.weight.device)
        and not any(map(has_virtual_tokens, model.modules()))
        and (not joined or goes_by_segments(model))
    )


def row_sums(values: Tensor, labels: Tensor) -> Tensor:
    """Return the sum over each row's labelled tokens of `values` (M,), and their number; (B, 2)."""
    place = (labels[:, 1:] != IGNORED).nonzero()[:, 0]
    pairs = torch.stack([values, torch.ones_like(values)], 1).double()
    return pairs.new_zeros(len(labels), 2).index_add(0, place, pairs)
