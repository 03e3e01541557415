"""The tokens that truncation left where a token was drawn: one bit for each of a vocabulary."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

EIGHT = tuple(2**place for place in range(8))
OUTSIDE = -1e30  # the logit of a token that is not kept: of probability 0, and finite
ALL = 255  # a byte that keeps all of its tokens


def wide(vocabulary: int) -> int:
    """The bytes that hold a vocabulary."""
    return -(-vocabulary // 8)


def support(logits: Tensor) -> Tensor:
    """Which tokens of logits (..., V) are not minus infinity, as truncation has it (..., bytes)."""
    kept = pad(logits > -torch.inf, (0, -logits.size(-1) % 8)).unflatten(-1, (-1, 8))
    return (kept * torch.tensor(EIGHT, device=logits.device)).sum(-1).to(torch.uint8)


def within(logits: Tensor, kept: Tensor | None) -> Tensor:
    """Logits (..., V) that leave the tokens outside of `kept` (..., bytes) no probability."""
    if kept is None:
        return logits
    bits = kept.unsqueeze(-1) & torch.tensor(EIGHT, dtype=torch.uint8, device=kept.device)
    return logits.masked_fill(bits.flatten(-2)[..., : logits.size(-1)] == 0, OUTSIDE)


def as_bytes(kept: Tensor) -> list[bytes]:
    """The support of each token of a completion (T, bytes)."""
    return [bytes(row) for row in kept.tolist()]


def as_tensor(rows: Sequence[Sequence[bytes]], width: int) -> Tensor:
    """Those of completions (B, width, bytes); behind their ends all tokens are kept."""
    found = torch.full((len(rows), width, len(rows[0][0])), ALL, dtype=torch.uint8)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.frombuffer(bytearray(b"".join(row)), dtype=torch.uint8).view(
            len(row), -1
        )
    return found
