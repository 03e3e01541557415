"""A law of the output head: the precision of its logits rounds the probabilities of tokens."""

import torch

from core.forward.sampler_gap import AnswerLogps, correlation, difference

ANSWERS, LENGTH, HIDDEN, VOCABULARY = 4, 64, 64, 50
SHARPNESS = (0.5, 1.0, 2.0)  # standard deviation of the logits


def lost_correlation(dtype: str) -> list[float]:
    """Return 1 - the correlation of rounded and exact probabilities, for each of `SHARPNESS`.

    In millionths.

    Args:
        dtype: of the head; the hidden states are in bfloat16 in any case.
    """
    return [1e6 * (1 - correlation(_answers(dtype, sharpness)).value) for sharpness in SHARPNESS]


def rounding_gap(dtype: str) -> list[float]:
    """Return the mean |rounded - exact log-probability| of tokens, for each of `SHARPNESS`.

    In millionths of a nat.
    """
    return [1e6 * difference(_answers(dtype, sharpness)).value for sharpness in SHARPNESS]


def _answers(dtype: str, sharpness: float) -> list[AnswerLogps]:
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(ANSWERS * LENGTH, HIDDEN, generator=draw).bfloat16()
    weight = torch.randn(VOCABULARY, HIDDEN, generator=draw) * sharpness / HIDDEN**0.5
    tokens = torch.randint(VOCABULARY, (len(hidden), 1), generator=draw)
    logits = [
        _logits(hidden, weight, precision) for precision in (getattr(torch, dtype), torch.float64)
    ]
    pair = [rows.double().log_softmax(1).gather(1, tokens).view(ANSWERS, -1) for rows in logits]
    return [AnswerLogps(*rows) for rows in zip(*pair, strict=True)]


def _logits(hidden: torch.Tensor, weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return logits whose weights and results are rounded, and no sum: that depends on the CPU."""
    return (hidden.to(dtype).double() @ weight.T.to(dtype).double()).to(dtype)
