"""Bit masks of the tokens that truncation left at a position: one bit per vocabulary entry."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

EIGHT = tuple(2**place for place in range(8))
OUTSIDE = -1e30  # logit of a token outside of the mask: probability 0, and finite
ALL = 255  # a byte whose eight bits are set


def mask_bytes(vocabulary: int) -> int:
    """Return the number of bytes of a mask over `vocabulary` tokens."""
    return -(-vocabulary // 8)


def support(logits: Tensor) -> Tensor:
    """Pack which logits (..., V) are finite into bits, shape (..., ceil(V / 8)), dtype uint8."""
    bits = pad(logits > -torch.inf, (0, -logits.size(-1) % 8)).unflatten(-1, (-1, 8))
    return (bits * torch.tensor(EIGHT, device=logits.device)).sum(-1).to(torch.uint8)


def within(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Return logits (..., V), those of tokens outside of `mask` set to `OUTSIDE`.

    Args:
        logits: next-token logits, shape (..., V).
        mask: packed bits, shape (..., bytes); None leaves the logits as they are.
    """
    if mask is None:
        return logits
    selected = mask.unsqueeze(-1) & torch.tensor(EIGHT, dtype=torch.uint8, device=mask.device)
    return logits.masked_fill(selected.flatten(-2)[..., : logits.size(-1)] == 0, OUTSIDE)


def as_bytes(masks: Tensor) -> list[bytes]:
    """Return the mask of each token of one completion (T, bytes) as `bytes`."""
    return [bytes(row) for row in masks.tolist()]


def as_tensor(rows: Sequence[Sequence[bytes]], width: int) -> Tensor:
    """Return the masks of completions, shape (B, width, bytes); padding has all bits set."""
    masks = torch.full((len(rows), width, len(rows[0][0])), ALL, dtype=torch.uint8)
    for i, row in enumerate(rows):
        masks[i, : len(row)] = torch.frombuffer(bytearray(b"".join(row)), dtype=torch.uint8).view(
            len(row), -1
        )
    return masks
