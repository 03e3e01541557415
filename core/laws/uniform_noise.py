"""Laws of discrete diffusion with uniform noise, arXiv 2605.22765, over levels of noise."""

import torch
from torch import Tensor

from core.losses.diffusion import denoising_loss, leave_one_out_denoiser

SYMBOLS, DRAWS = 7, 50  # number K of symbols, and draws of the logits
KEPT = tuple(step / 20 for step in range(1, 20))  # alpha, the probability that a token is kept


def transitions(kept: float) -> Tensor:
    """Return p(x | v) = alpha [v = x] + (1 - alpha) / K for clean tokens v and noisy ones x."""
    kernel = torch.full((SYMBOLS, SYMBOLS), (1 - kept) / SYMBOLS, dtype=torch.float64)
    return kernel + kept * torch.eye(SYMBOLS, dtype=torch.float64)


def pairs() -> tuple[Tensor, Tensor]:
    """Return the clean and the noisy token of every pair of symbols."""
    clean, noisy = torch.cartesian_prod(torch.arange(SYMBOLS), torch.arange(SYMBOLS)).unbind(1)
    return clean, noisy


def bayes_errors() -> list[float]:
    """Return the largest difference of the denoiser from Bayes' rule at each level of noise.

    Bayes' rule is d(v) ~ softmax(f)(v) p(x | v), for random logits f and every noisy token x.
    """
    draw = torch.Generator().manual_seed(0)
    noisy = torch.arange(SYMBOLS).repeat(DRAWS)
    logits = torch.randn(len(noisy), SYMBOLS, generator=draw, dtype=torch.float64)
    errors: list[float] = []
    for kept in KEPT:
        level = torch.full((len(noisy),), kept, dtype=torch.float64)
        joint = logits.softmax(-1) * transitions(kept)[:, noisy].T
        expected = joint / joint.sum(-1, keepdim=True)
        denoised = leave_one_out_denoiser(logits, noisy, level).softmax(-1)
        errors.append(float((denoised - expected).abs().max()))
    return errors


def initial_losses(model_prediction: str) -> list[float]:
    """Return the expected loss of a network whose logits are all 0 at each level of noise.

    Args:
        model_prediction: A key of `MODEL_PREDICTIONS`.
    """
    clean, noisy = pairs()
    logits = torch.zeros(len(clean), SYMBOLS, dtype=torch.float64)
    losses: list[float] = []
    for kept in KEPT:
        level = torch.full((len(clean),), kept, dtype=torch.float64)
        loss = denoising_loss(model_prediction, logits, noisy, level, clean)
        chance = transitions(kept)[clean, noisy] / SYMBOLS
        losses.append(float((chance * loss).sum()))
    return losses
