"""Laws of optimal values of prompts, their estimates, and the optimum of A*-PO's regression."""

import torch
from torch import Tensor

from core.laws.baselines import RATES
from core.losses.regression import implicit_rewards, optimal_values, squared_regression

WHOLE = 20  # equally likely answers that a rate of right ones is written as
REFERENCE = (4, 2, 1, 1)  # of eight equally likely answers, how many are the same one
REWARDS = (0.0, 1.0, 0.0, 1.0)
SOFTNESS = (0.5, 1.0, 2.0)


def binary_rewards(count: int, correct: int) -> Tensor:
    """Return 0/1 rewards of shape (1, count), the first `correct` of them 1."""
    return (torch.arange(count) < correct).double().unsqueeze(0)


def value(beta: float, right: int = 3, count: int = 8) -> float:
    """Return V* of a prompt to which `right` of `count` equally likely answers are right."""
    return float(optimal_values(binary_rewards(count, right), beta))


def estimate_error(samples: int, beta: float = 0.5) -> list[float]:
    """Return E|V* estimated from `samples` answers - V*|, for each of `RATES`."""
    errors: list[float] = []
    for rate in RATES:
        exact = value(beta, round(rate * WHOLE), WHOLE)
        right_counts = torch.distributions.Binomial(samples, torch.tensor(rate).double())
        rights = torch.arange(samples + 1)
        weights = right_counts.log_prob(rights.double()).exp()
        values = torch.tensor([value(beta, int(right), samples) for right in rights])
        errors.append(float(weights @ (values - exact).abs().double()))
    return errors


def fixed_point_divergence() -> list[float]:
    """Return KL(optimum of the squared regression || normalised reference exp(r / beta)).

    There is one number for each beta of `SOFTNESS`, for a policy over four answers and the exact
    value of the prompt.
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
        logps, whole_mask = logits.log_softmax(0).unsqueeze(1), torch.ones(len(rewards), 1)
        implicit = implicit_rewards(logps, reference.unsqueeze(1), whole_mask, beta)
        policy = squared_regression(implicit, rewards - best).mean()
        policy.backward()  # pyright: ignore[reportUnknownMemberType]
        return policy

    search.step(loss)  # pyright: ignore[reportUnknownMemberType]
    policy, target = logits.detach().log_softmax(0), (reference + rewards / beta).log_softmax(0)
    return float((policy.exp() * (policy - target)).sum())
