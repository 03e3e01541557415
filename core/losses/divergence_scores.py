"""Derivatives f'(t) of divergences at the ratio t of two policies, from its logarithm."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import nn

from core.shapes import B

NEAR = 1e-6  # of 1, where the alpha divergence is the reverse KL
LARGEST = 80.0  # exponent that 32 bits represent


def log_sigmoid(x: B) -> B:
    """Return log(1 / (1 + exp(-x)))."""
    return nn.functional.logsigmoid(x)


def reverse_kl(log_ratio: B, alpha: float) -> B:  # noqa: ARG001 - a table row
    """Return log t, the derivative of t log t up to a constant; arXiv 2309.16240 table 1."""
    return log_ratio


def forward_kl(log_ratio: B, alpha: float) -> B:  # noqa: ARG001 - a table row
    """Return 1 - 1 / t, the derivative of -log t up to the constant 1."""
    return -torch.expm1(-log_ratio)


def js_divergence(log_ratio: B, alpha: float) -> B:  # noqa: ARG001 - a table row
    """Return log(2 t / (1 + t))."""
    return log(2) + log_sigmoid(log_ratio)


def alpha_divergence(log_ratio: B, alpha: float) -> B:
    """Return (t^(alpha - 1) - 1) / (alpha - 1), and log t where alpha is 1.

    Powers above exp(80) count as that.
    """
    if abs(alpha - 1) < NEAR:
        return log_ratio
    return torch.expm1(((alpha - 1) * log_ratio).clamp(max=LARGEST)) / (alpha - 1)


@dataclass(frozen=True)
class Divergence:
    """A row of `DIVERGENCES`: the derivative at a log-ratio (B,), and what it reads."""

    derivative: Callable[[B, float], B]
    doc: str
    parameters: tuple[str, ...] = ()


DIVERGENCES = {
    "reverse_kl": Divergence(reverse_kl, "log t, that of DPO"),
    "forward_kl": Divergence(forward_kl, "1 - 1/t"),
    "js_divergence": Divergence(js_divergence, "log(2t/(1 + t))"),
    "alpha_divergence": Divergence(
        alpha_divergence,
        "(t^(a - 1) - 1)/(a - 1) with a = `f_alpha_divergence_coef`",
        parameters=("f_alpha_divergence_coef",),
    ),
}
