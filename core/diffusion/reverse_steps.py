"""Sampling of texts by the reverse of uniform noise: ancestral steps through its posterior."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.diffusion.noise import symbol_count
from core.losses.diffusion import MODEL_PREDICTIONS, Symbols
from core.shapes import NV

TOKENS = 2**15  # that are denoised together


def step_posterior(denoised: NV, noisy: Symbols, kept: float, kept_before: float) -> NV:
    """Return the probability of each less noisy token y of an earlier time, given the noisy x.

    p(y | x) = sum_v d(v) p(y | v) p(x | y) / p(x | v) for clean tokens v, with p(x | v) = alpha
    [x = v] + (1 - alpha) / K, where alpha is `kept` from v to x, `kept_before` from v to y, and
    their ratio from y to x.

    Args:
        denoised: Probabilities d of the clean token given all noisy ones.
        noisy: The noisy token x.
        kept: Probability that noise has kept a token.
        kept_before: That at the earlier time, at least `kept`.
    """
    symbols = denoised.shape[-1]
    is_same = nn.functional.one_hot(noisy, symbols).to(denoised)
    weights = denoised / (kept * is_same + (1 - kept) / symbols)
    spread = (1 - kept_before) / symbols * weights.sum(-1, keepdim=True)
    step = kept / kept_before
    joint = (step * is_same + (1 - step) / symbols) * (kept_before * weights + spread)
    return joint / joint.sum(-1, keepdim=True)


@torch.no_grad()
def draw_texts(
    model: PreTrainedModel, model_prediction: str, *, count: int, length: int, steps: int, seed: int
) -> Tensor:
    """Return token ids (count, length) of texts that a model denoises from uniform tokens.

    The time goes from 1 to 0 in equal steps; tokens are drawn independently in each of them. Texts
    of `TOKENS` tokens together are in memory at a time.

    Args:
        model: Model whose logits (B, T, K) have a row for each token.
        model_prediction: What the logits say, a key of `MODEL_PREDICTIONS`.
        count: Number of texts.
        length: Tokens of a text.
        steps: Steps of the reverse process, each a forward pass.
        seed: Seed of the draws.
    """
    device = model.device
    draw = torch.Generator(device).manual_seed(seed)
    denoiser, symbols = MODEL_PREDICTIONS[model_prediction].denoiser, symbol_count(model)
    levels = torch.linspace(0, 1, steps + 1, dtype=torch.float64).tolist()
    drawn = list[Tensor]()
    at_once = max(1, TOKENS // length)
    for first in range(0, count, at_once):
        size = (min(at_once, count - first), length)
        ids = torch.randint(symbols, size, generator=draw, device=device)
        for kept, kept_before in pairwise(levels):
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.flatten(0, 1)
            noisy = ids.flatten()
            alpha = torch.full(noisy.shape, kept, dtype=logits.dtype, device=device)
            denoised = denoiser(logits, noisy, alpha).double().softmax(-1)
            chances = step_posterior(denoised, noisy, kept, kept_before)
            ids = torch.multinomial(chances, 1, generator=draw).view(ids.shape)
        drawn.append(ids)
    return torch.cat(drawn)
