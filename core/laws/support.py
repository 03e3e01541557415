"""A law of the ratio of a policy to a sampler with equal weights that truncates by top-p."""

import torch

from core.forward.head import log_probabilities
from core.rollout.draw import logits_warpers
from core.rollout.engine import Sampling
from core.rollout.support import support

CHANCES = (
    (0.50, 0.30, 0.15, 0.05),
    (0.40, 0.25, 0.14, 0.10, 0.07, 0.04),
    (0.97, 0.01, 0.01, 0.01),
)
TOP_P = (0.9, 0.7, 0.4)


def ratio_error(*, keeps_support: bool) -> list[float]:
    """Return the mean of |policy / sampler - 1| under the sampler, for each of `TOP_P`.

    Args:
        keeps_support: whether the policy is normalised over the tokens that the sampler could draw,
            as the training head does; arXiv 2512.02556 (keep sampling mask).
    """
    return [
        sum(_error(chances, top_p, keeps_support) for chances in CHANCES) / len(CHANCES)
        for top_p in TOP_P
    ]


def _error(chances: tuple[float, ...], top_p: float, keeps_support: bool) -> float:
    logits = torch.tensor([chances], dtype=torch.float64).log()
    no_tokens = torch.LongTensor(1, 0)  # no token has been drawn
    warped = logits_warpers(Sampling(max_tokens=1, ends=frozenset(), top_p=top_p))(
        no_tokens, logits
    )
    sampler = warped.softmax(-1)
    drawable = support(warped) if keeps_support else None
    identity = torch.eye(len(chances), dtype=torch.float64)  # its hidden states are the logits
    policy = log_probabilities(logits, identity, 1.0, drawable).exp()
    is_drawn = sampler > 0
    return (sampler * (policy / sampler - 1).abs())[is_drawn].sum().item()
