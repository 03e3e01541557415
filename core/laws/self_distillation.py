"""Laws of simple self-distillation, arXiv 2604.01193: what its loss converges to at one position.

Targets are the probabilities with which the sampler draws tokens; the fitted model minimises the
expected loss of fine-tuning on them. Logits are those of one position (V,).
"""

import torch
from torch import Tensor

from core.losses.supervised import nll
from core.rollout.draw import logits_warpers
from core.rollout.engine import Sampling

CASES = (
    (2.0, 1.0, 0.0, -3.0),
    (5.0, 4.9, -2.0, -2.1, -7.0),
    (0.0, 0.0, 0.0),
    (12.0, -12.0),
)


def sampled(logits: Tensor, temperature: float, *, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Return the probabilities (V,) with which the sampler draws tokens."""
    sampling = Sampling(
        max_tokens=1, ends=frozenset(), temperature=temperature, top_k=top_k, top_p=top_p
    )
    no_tokens = torch.LongTensor(1, 0)  # no token has been drawn
    return logits_warpers(sampling)(no_tokens, logits.unsqueeze(0))[0].softmax(-1)


def fitted(target: Tensor) -> Tensor:
    """Return the logits that minimise the expected loss on a target: its logarithm."""
    return target.log()


def expected_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Return the expected loss of fine-tuning on one token that is drawn from the target."""
    losses = nll(logits.log_softmax(-1))
    return (target * losses)[target > 0].sum()


def start_logits() -> list[Tensor]:
    """Return the logits of the starting model in each case."""
    return [torch.tensor(case, dtype=torch.float64) for case in CASES]


def fit_gradients(temperature: float) -> list[float]:
    """Return the largest |d loss / d logit| of the fitted model, for each case."""
    sizes: list[float] = []
    for start in start_logits():
        target = sampled(start, temperature)
        logits = fitted(target).requires_grad_()
        (gradient,) = torch.autograd.grad(expected_loss(logits, target), logits)
        sizes.append(gradient.abs().max().item())
    return sizes


def composed_variation(fit: float, decode: float) -> list[float]:
    """Return the total variation between two ways of decoding without truncation, for each case.

    One model is fitted to samples at temperature `fit` and decoded at `decode`; the other is the
    starting model, decoded at the product of both.
    """
    pairs = [
        (sampled(fitted(sampled(start, fit)), decode), sampled(start, fit * decode))
        for start in start_logits()
    ]
    return [(one - other).abs().sum().item() / 2 for one, other in pairs]
