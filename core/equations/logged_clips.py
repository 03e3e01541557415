"""Laws of logged statistics: the tokens logged as clipped are those that lose their gradient."""

from dataclasses import replace
from math import exp, log

import torch
from torch import Tensor

from core.equations.stated import ADVANTAGES, OLD, formula_error, rollout
from core.losses.batch import PolicyConfig, Rollout
from core.losses.loss_statistics import (
    CAPPING,
    CLIPPING,
    LOG_CLIPPING,
    Statistic,
    probability_rise,
    rare_gains,
)
from core.losses.policy import LOSS_TYPES

GRPO = PolicyConfig(epsilon=0.2, epsilon_high=0.28)
GMPO = PolicyConfig(loss_type="gmpo", epsilon=0.2, epsilon_high=0.28)
CISPO = PolicyConfig(loss_type="cispo", epsilon_high=5.0)
RARE_TOKEN = 0.1  # arXiv 2506.13585 calls tokens below it rare


def clip_errors() -> list[float]:
    """Count the tokens that a clip stops and that the log does not call clipped, or the reverse.

    Both are counted for the lower and the upper clip of GRPO and of GMPO.
    """
    return [
        _disagreements(statistic, sign, config)
        for config, logged in ((GRPO, CLIPPING), (GMPO, LOG_CLIPPING))
        for statistic, sign in zip(logged[:2], (-1.0, 1.0), strict=True)
    ]


def _disagreements(statistic: Statistic, sign: float, config: PolicyConfig) -> float:
    r = replace(rollout()[0], entropy_mask=None)
    logged = statistic.values(r, r.log_ratio.exp(), config)
    stopped = (_gradient(r, config) == 0) & (r.advantages * sign > 0)
    return float(((logged != stopped) * r.mask).sum())


def _gradient(r: Rollout, config: PolicyConfig) -> Tensor:
    """Return the gradient (B, T) of the surrogate by the log-probability of each token."""
    losses = LOSS_TYPES[config.loss_type].surrogate(r, r.log_ratio.exp(), config)
    return torch.autograd.grad(losses.sum(), r.logps)[0]


def cap_errors() -> float:
    """Count the tokens of good answers whose weight is at CISPO's cap and that are not logged so.

    Tokens that are logged and are not at the cap count as well.
    """
    r, _ = rollout()
    logged = CAPPING[0].values(r, r.log_ratio.exp(), CISPO)
    weight = -_gradient(r, CISPO) / r.advantages
    at_cap = (weight - CISPO.upper_epsilon).abs() < 1e-9
    return float(((logged != (at_cap & (r.advantages > 0))) * r.mask).sum())


def rare_errors() -> list[float]:
    """Return two errors: of the rise of a token's probability, and of which tokens are rare."""
    r, tokens = rollout()
    gains = [ADVANTAGES[i % len(ADVANTAGES)] > 0 for i in range(len(tokens))]

    def rare(i: int, t: int) -> float:
        return float(gains[i] and OLD[t] < log(RARE_TOKEN))

    return [
        formula_error(
            probability_rise(r, r.log_ratio, GRPO),
            tokens,
            lambda i, t: exp(OLD[t] + tokens[i][t]) - exp(OLD[t]),
        ),
        formula_error(rare_gains(r), tokens, rare),
    ]
