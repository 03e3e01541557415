"""One token for every row of logits, from a uniform number for every row."""

import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from core.rollout.engine import Sampling

EXACT = 2**13  # tokens of a vocabulary from which sums of probabilities need 64 bits


def warpers(sampling: Sampling) -> LogitsProcessorList:
    """Transformers' own for the settings that change anything, in its order."""
    chosen = LogitsProcessorList()
    if sampling.temperature == 0:
        return chosen
    if sampling.temperature != 1.0:
        chosen.append(TemperatureLogitsWarper(sampling.temperature))
    if sampling.top_k:
        chosen.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1.0:
        chosen.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p is not None:
        chosen.append(MinPLogitsWarper(sampling.min_p))
    return chosen


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits (R, V) with those of `seen` tokens made less likely, arXiv 1909.05858, section 4.1."""
    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def most_likely(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Token and log-probability (R,) of the highest logits (R, V)."""
    tokens = logits.argmax(-1, keepdim=True)
    return tokens.squeeze(-1), logits.log_softmax(-1).gather(-1, tokens).squeeze(-1)


def draw(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Token and log-probability (R,) where the distribution function passes `uniform` (R,).

    A row's token depends on its own logits (R, V) and number only.
    """
    p = logits.softmax(-1)
    sums = p.cumsum(-1, dtype=torch.float64 if p.size(-1) >= EXACT else p.dtype)
    # a total may differ from 1 in its last bit, and a uniform number times it round up to it
    level = uniform.to(sums.dtype).unsqueeze(-1) * sums[:, -1:]
    tokens = torch.searchsorted(sums, level, right=True)
    last = (p > 0).flip(-1).to(torch.uint8).argmax(-1, keepdim=True)
    tokens = tokens.minimum(p.size(-1) - 1 - last)
    return tokens.squeeze(-1), p.gather(-1, tokens).squeeze(-1).log()


def stream(seed: int, length: int) -> Tensor:
    """Uniform numbers (length,) in [0, 1); a longer stream begins with the shorter one."""
    return torch.rand(length, generator=torch.Generator().manual_seed(seed))
