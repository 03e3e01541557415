"""Optimal values of prompts, their estimates, and the policy that A*-PO's regression leads to."""

import torch
from torch import Tensor

from core.laws.baselines import RATES
from core.losses.regression import implicit_rewards, optimal_values, squared_regression

WHOLE = 20  # equally likely answers that a rate of right ones is written as
REFERENCE = (4, 2, 1, 1)  # of eight equally likely answers, how many are the same one
REWARDS = (0.0, 1.0, 0.0, 1.0)
SOFTNESS = (0.5, 1.0, 2.0)


def answers(right: int, count: int) -> Tensor:
    """The rewards of `count` answers of which so many are right (1, N)."""
    return (torch.arange(count) < right).double().unsqueeze(0)


def value(beta: float, right: int = 3, count: int = 8) -> float:
    """V* of a prompt, of which so many answers are right."""
    return float(optimal_values(answers(right, count), beta))


def estimate_error(samples: int, beta: float = 0.5) -> list[float]:
    """E|V* of so many samples - V*|, over all numbers of right ones, for each of `RATES`."""
    found: list[float] = []
    for rate in RATES:
        exact = value(beta, round(rate * WHOLE), WHOLE)
        drawn = torch.distributions.Binomial(samples, torch.tensor(rate).double())
        rights = torch.arange(samples + 1)
        weights = drawn.log_prob(rights.double()).exp()
        values = torch.tensor([value(beta, int(right), samples) for right in rights])
        found.append(float(weights @ (values - exact).abs().double()))
    return found


def fixed_point_divergence() -> list[float]:
    """KL(what minimises the squared regression || reference exp(r / beta), normalised).

    Over a table of four answers, for each beta of `SOFTNESS`, with the exact value of the prompt.
    """
    return [_divergence(beta) for beta in SOFTNESS]


def _divergence(beta: float) -> float:
    counts, rewards = torch.tensor(REFERENCE), torch.tensor(REWARDS, dtype=torch.float64)
    reference = (counts / counts.sum()).double().log()
    best = optimal_values(rewards.repeat_interleave(counts).unsqueeze(0), beta)
    logits = reference.clone().requires_grad_()
    search = torch.optim.LBFGS(
        [logits],
        max_iter=500,
        tolerance_grad=1e-14,
        tolerance_change=1e-18,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        search.zero_grad()
        logps, every = logits.log_softmax(0).unsqueeze(1), torch.ones(len(rewards), 1)
        implicit = implicit_rewards(logps, reference.unsqueeze(1), every, beta)
        found = squared_regression(implicit, rewards - best).mean()
        found.backward()  # pyright: ignore[reportUnknownMemberType]
        return found

    search.step(loss)  # pyright: ignore[reportUnknownMemberType]
    found, target = logits.detach().log_softmax(0), (reference + rewards / beta).log_softmax(0)
    return float((found.exp() * (found - target)).sum())
