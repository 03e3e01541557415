"""Losses of discrete diffusion with uniform noise, arXiv 2605.22765.

A noisy token x is the clean one with probability alpha, and else drawn uniformly from K symbols.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from core.shapes import NV, N

Symbols = Int[Tensor, "N"]


def leave_one_out_denoiser(logits: NV, noisy: Symbols, kept: N) -> NV:
    """Return f + log(1 + K alpha / (1 - alpha)) x, the logits of the clean token given all tokens.

    Args:
        logits: Logits f of the clean token given the other noisy tokens alone.
        noisy: The noisy token x, which is one-hot in the equation.
        kept: The probability alpha that noise kept the token, above 0 and below 1.
    """
    shift = torch.log1p(logits.shape[-1] * kept / (1 - kept))
    return logits.scatter_add(-1, noisy.unsqueeze(-1), shift.unsqueeze(-1))


def plain_denoiser(logits: NV, noisy: Symbols, kept: N) -> NV:
    """Return the logits: they are those of the clean token given all tokens, the noisy one too."""
    del noisy, kept
    return logits


@dataclass(frozen=True)
class ModelPrediction:
    """A row of `MODEL_PREDICTIONS`: the logits of the clean token from those of the network."""

    denoiser: Callable[[NV, Symbols, N], NV]
    doc: str


MODEL_PREDICTIONS: Mapping[str, ModelPrediction] = {
    "mean_loo": ModelPrediction(leave_one_out_denoiser, "a token given all other noisy tokens"),
    "mean": ModelPrediction(plain_denoiser, "a token given all noisy tokens, its own too"),
}


def denoising_loss(model_prediction: str, logits: NV, noisy: Symbols, kept: N, clean: Symbols) -> N:
    """Return -log softmax(d)[clean] of each token, where d are the logits of the denoiser.

    Args:
        model_prediction: A key of `MODEL_PREDICTIONS`.
        logits: Logits of the network.
        noisy: The noisy tokens.
        kept: The probability that noise kept a token.
        clean: The clean tokens.
    """
    denoised = MODEL_PREDICTIONS[model_prediction].denoiser(logits, noisy, kept)
    return nn.functional.cross_entropy(denoised, clean, reduction="none")
