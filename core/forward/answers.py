"""Log-probabilities and statistics of the tokens of answers, for losses of preferences."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.forward.batches import Batch
from core.forward.head import chunk_size, head_logps, log_probabilities
from core.forward.logps import completion_outputs, flush_left, read_packed, token_entropy
from core.forward.packing import can_pack, pack
from core.forward.router import router_loss
from core.losses.pair_weights import ALIGNMENTS


class AnswerTokens(NamedTuple):
    """Numbers of each token of B answers (B, T), 0 on padding.

    Attributes:
        logps: Log-probabilities, with gradient.
        entropy: Entropy of the distribution of the token.
        right: 1 if the token was the most likely one, else 0.
        mean_logits: Mean of the logits over the vocabulary.
        alignment: The row of `ALIGNMENTS` that is requested.
        router_loss: Load-balancing loss over all tokens of these rows, if requested.
    """

    logps: Tensor
    entropy: Tensor
    right: Tensor
    mean_logits: Tensor
    alignment: Tensor
    router_loss: Tensor | None = None


def answer_tokens(
    model: nn.Module, batch: Batch, *, alignment: str = "none", with_router: bool = False
) -> AnswerTokens:
    """Return log-probabilities and statistics of the completion tokens of a batch.

    Rows are packed if the model's attention allows it, and equal prompts are read once. Only
    log-probabilities have a gradient.
    """
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    if policy is not None and not with_router and can_pack(policy, batch):
        return packed_tokens(model, policy, batch, alignment=alignment)
    return padded_tokens(model, batch, alignment=alignment, with_router=with_router)


def packed_tokens(
    model: nn.Module, policy: PreTrainedModel, batch: Batch, *, alignment: str
) -> AnswerTokens:
    """Compute `answer_tokens` from packed rows."""
    packed = pack(batch, from_zero=True)  # TRL pads pairs on the right
    head = cast(nn.Linear, policy.get_output_embeddings())

    def head_outputs(hidden: Tensor) -> tuple[Tensor, ...]:
        states, weight = hidden[0], head.weight
        outputs = head_logps(
            states, weight, packed.targets, 1.0, with_entropy=True, with_right=True
        )
        logps = outputs[0]
        with torch.no_grad():
            means = (states @ weight.mean(0)).to(logps.dtype)
            aligned = aligned_with(alignment, states, weight)
        return *outputs, means, aligned.to(logps.dtype)

    logps, *others = read_packed(model, policy, batch, packed, head_outputs)
    return AnswerTokens(logps, *(other.detach() for other in others))


def aligned_with(alignment: str, hidden: Tensor, weight: Tensor) -> Tensor:
    """Return a row of `ALIGNMENTS` (N,) of hidden states (N, D) under a head (V, D).

    The logits of all tokens are never in memory at once.
    """
    if ALIGNMENTS[alignment].is_zero:
        return hidden.new_zeros(len(hidden))
    of, rows = ALIGNMENTS[alignment].of, max(1, chunk_size(hidden.device) // len(weight))
    return torch.cat([of(log_probabilities(h, weight, 1.0)) for h in hidden.split(rows)])


def padded_tokens(
    model: nn.Module, batch: Batch, *, alignment: str, with_router: bool
) -> AnswerTokens:
    """Compute `answer_tokens` from rows that are padded on the right."""
    mask, rows = batch["completion_mask"].bool(), flush_left(batch)
    outputs = completion_outputs(model, rows, with_router=with_router)
    logits = outputs.logits if outputs.logits.dtype == torch.float64 else outputs.logits.float()
    total, targets = logits.logsumexp(-1), rows.ids[:, rows.first :]
    logps = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1) - total
    with torch.no_grad():
        right = (logits.argmax(-1) == targets).to(logps.dtype)
        log_probs = logits - total.unsqueeze(-1)
        others = token_entropy(logits, total), right, logits.mean(-1)
        aligned = ALIGNMENTS[alignment].of(log_probs)
    tokens = (rows.at_tokens(values, mask) for values in (logps, *others, aligned))
    return AnswerTokens(*tokens, router_loss=router_loss(outputs) if with_router else None)
