"""Sampling of one token per row of logits, from one uniform number per row."""

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from core.rollout.engine import Sampling

EXACT = 2**13  # vocabulary size from which cumulative sums of probabilities need float64
BLOCK = 2**7  # size of the blocks whose sums are accumulated first for such a vocabulary


def logits_warpers(sampling: Sampling) -> LogitsProcessorList:
    """Return the transformers warpers that these settings need, in the order of `generate`."""
    chosen_warpers = LogitsProcessorList()
    if sampling.temperature == 0:
        return chosen_warpers
    if sampling.temperature != 1.0:
        chosen_warpers.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        chosen_warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1.0:
        chosen_warpers.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p is not None:
        chosen_warpers.append(MinPLogitsWarper(sampling.min_p))
    return chosen_warpers


def penalize_repetition(logits: Tensor, seen_tokens: Tensor, penalty: float) -> Tensor:
    """Apply the repetition penalty of arXiv 1909.05858 s4.1 to logits (R, V) at the `seen_tokens`.

    Args:
        logits: next-token logits, shape (R, V).
        seen_tokens: mask of the tokens of the row so far, shape (R, V).
        penalty: factor that makes those tokens less likely if it is above 1.
    """
    return torch.where(
        seen_tokens, torch.where(logits < 0, logits * penalty, logits / penalty), logits
    )


def most_likely(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return token and log-probability, both (R,), of the highest of the logits (R, V)."""
    tokens = logits.argmax(-1, keepdim=True)
    return tokens.squeeze(-1), logits.log_softmax(-1).gather(-1, tokens).squeeze(-1)


def draw(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row: invert the cumulative distribution at `uniform` (R,).

    A row's token depends on its own logits (R, V) and uniform number only. Returns tokens and their
    log-probabilities, both (R,).
    """
    p = logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    blocks = in_blocks(p) if p.size(-1) >= EXACT else None
    parts = p if blocks is None else blocks.sum(-1, dtype=torch.float64)
    sums = parts.cumsum(-1)
    # the total may differ from 1 in its last bit, and its product with `uniform` may reach it
    level = uniform.to(sums.dtype).unsqueeze(-1) * sums[:, -1:]
    tokens = first_above(parts, sums, level)
    if blocks is not None:
        inside = blocks.take_along_dim(tokens.unsqueeze(-1), 1).squeeze(1).double()
        before = pad(sums, (1, 0)).gather(-1, tokens)
        tokens = tokens * BLOCK + first_above(inside, before + inside.cumsum(-1), level)
    return tokens.squeeze(-1), p.gather(-1, tokens).squeeze(-1).log()


def in_blocks(p: Tensor) -> Tensor:
    """Return probabilities (R, V) as blocks (R, N, BLOCK), the last of which may end with zeros."""
    missing = -p.size(-1) % BLOCK
    return (pad(p, (0, missing)) if missing else p).unflatten(-1, (-1, BLOCK))


def first_above(parts: Tensor, sums: Tensor, level: Tensor) -> Tensor:
    """Return the first place (R, 1) at which cumulative sums (R, N) exceed a level (R, 1).

    It is at most the last of the `parts` that is positive.
    """
    last = (parts > 0).flip(-1).to(torch.uint8).argmax(-1, keepdim=True)
    return torch.searchsorted(sums, level, right=True).minimum(parts.size(-1) - 1 - last)


def uniform_stream(seed: int, length: int) -> Tensor:
    """Return uniform numbers in [0, 1), shape (length,), the first of an endless stream."""
    return torch.rand(length, generator=torch.Generator().manual_seed(seed))
