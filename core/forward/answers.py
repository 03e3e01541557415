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


class AnswerTokens(NamedTuple):
    """Numbers of each token of B answers (B, T), 0 on padding.

    Attributes:
        logps: Log-probabilities, with gradient.
        entropy: Entropy of the distribution of the token.
        right: 1 if the token was the most likely one, else 0.
        mean_logits: Mean of the logits over the vocabulary.
        log_sum_squares: log sum_v p(v)^2; 0 unless requested.
        router_loss: Load-balancing loss over all tokens of these rows, if requested.
    """

    logps: Tensor
    entropy: Tensor
    right: Tensor
    mean_logits: Tensor
    log_sum_squares: Tensor
    router_loss: Tensor | None = None


def answer_tokens(
    model: nn.Module, batch: Batch, *, with_squares: bool = False, with_router: bool = False
) -> AnswerTokens:
    """Return log-probabilities and statistics of the completion tokens of a batch.

    Rows are packed if the model's attention allows it, and equal prompts are read once. Only
    log-probabilities have a gradient.
    """
    policy = next((m for m in model.modules() if isinstance(m, PreTrainedModel)), None)
    if policy is not None and not with_router and can_pack(policy, batch):
        return packed_tokens(model, policy, batch, with_squares=with_squares)
    return padded_tokens(model, batch, with_squares=with_squares, with_router=with_router)


def packed_tokens(
    model: nn.Module, policy: PreTrainedModel, batch: Batch, *, with_squares: bool
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
            squares = sum_squares(states, weight) if with_squares else torch.zeros_like(logps)
        return *outputs, means, squares.to(logps.dtype)

    logps, *others = read_packed(model, policy, batch, packed, head_outputs)
    entropy, right, means, squares = (other.detach() for other in others)
    return AnswerTokens(logps, entropy, right, means, squares)


def sum_squares(hidden: Tensor, weight: Tensor) -> Tensor:
    """Return log sum_v p(v)^2 of hidden states (N, D) under a head (V, D), without all logits."""
    rows = max(1, chunk_size(hidden.device) // len(weight))
    return torch.cat(
        [log_probabilities(h, weight, 1.0).mul_(2).logsumexp(-1) for h in hidden.split(rows)]
    )


def padded_tokens(
    model: nn.Module, batch: Batch, *, with_squares: bool, with_router: bool
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
        squares = (2 * log_probs).logsumexp(-1) if with_squares else torch.zeros_like(total)
        others = token_entropy(logits, total), right, logits.mean(-1), squares
    tokens = (rows.at_tokens(values, mask) for values in (logps, *others))
    return AnswerTokens(*tokens, router_loss=router_loss(outputs) if with_router else None)
