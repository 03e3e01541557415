"""Policies over a few actions that losses of pairs train with labels of a Bradley-Terry judge.

All run the losses that train, in 64 bits. The judge prefers an action with the chance sigma(its
reward minus that of the other), and every pair of actions is judged.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import exp

import torch
from torch import Tensor

from core.equations.advantage_equations import Numbers
from core.equations.preference_equations import Settings
from core.laws.preference_optima import minimize, pairs_of
from core.losses.preference import exo, preference_losses

CASES = ((0.0, 0.5, 1.0, 2.0), (0.0, 0.0, 0.0, 3.0), (0.0, 2.0, 2.0, 2.0))
# Points of a grid; the better mode is on the left, the worse on the right.
GRID = torch.linspace(-3, 3, 25, dtype=torch.float64)
PEAK, BETTER, WORSE, WIDTH = 1.5, 6.0, 5.0, 0.4
BROAD = torch.tensor([0.0, 0.7], dtype=torch.float64)  # mean and log-deviation
STARTS = (BROAD, torch.tensor([-PEAK, -1.0]).double(), torch.tensor([PEAK, -1.0]).double())


def judged_loss(
    loss: str,
    ratios: Tensor,
    rewards: Sequence[float],
    *,
    beta: float,
    divergence: str = "reverse_kl",
    order: float = 0.5,
) -> Tensor:
    """Return the mean loss of the pairs of actions with log-ratios (A,) and rewards.

    The action of the higher reward is chosen; `label_smoothing` is the chance that the judge
    prefers the other.

    Args:
        loss: Name of a loss that reads `label_smoothing`.
        ratios: Log-ratios of policy and reference.
        rewards: Reward of each action.
        beta: Weight of the log-ratios.
        divergence: Name of the divergence of the scores.
        order: Order of the alpha divergence.
    """
    by_difference = defaultdict[float, list[tuple[int, int]]](list)
    ordered = sorted(range(len(rewards)), key=lambda action: -rewards[action])
    for place, better in enumerate(ordered):
        for worse in ordered[place + 1 :]:
            by_difference[rewards[better] - rewards[worse]].append((better, worse))
    losses: list[Tensor] = []
    for difference, pairs in by_difference.items():
        settings = Settings(
            [loss],
            beta=beta,
            label_smoothing=1 / (1 + exp(difference)),
            f_divergence_type=divergence,
            f_alpha_divergence_coef=order,
        )
        better, worse = torch.tensor(pairs).T
        losses.append(preference_losses(pairs_of(ratios[better], ratios[worse]), settings).losses)
    return torch.cat(losses).mean()


def on_grid(parameters: Tensor) -> Tensor:
    """Return log-probabilities of the normal distribution of a mean and a log-deviation."""
    mean, log_deviation = parameters
    return (-((GRID - mean) / log_deviation.exp()).square() / 2).log_softmax(0)


def mass_on_better_mode(loss: str) -> float:
    """Return the probability that a normal policy gives to the better of two modes.

    The reward has two peaks, which no normal distribution has, and the reference is broad. Of the
    minima that are found from it and from both peaks, the lowest counts; arXiv 2402.00856 s3.
    """
    peaks = ((-PEAK, BETTER), (PEAK, WORSE))
    rewards = [
        sum(height for middle, height in peaks if abs(point - middle) < WIDTH)
        for point in GRID.tolist()
    ]
    reference = on_grid(BROAD)
    target = (reference + torch.tensor(rewards)).log_softmax(0)
    losses = {
        "exo": lambda p: exo(on_grid(p), target),  # of all points at once
        "sigmoid": lambda p: judged_loss("cdpo", on_grid(p) - reference, rewards, beta=1.0),
    }
    minima = [minimize(start, losses[loss]) for start in STARTS]
    lowest = min(minima, key=lambda trained: losses[loss](trained).item())
    return on_grid(lowest).exp()[(GRID + PEAK).abs() < WIDTH].sum().item()


def optimum(rewards: Sequence[float], divergence: str, order: float, beta: float) -> Tensor:
    """Return the probabilities (A,) that DPO with a divergence trains from a uniform reference."""
    uniform = torch.zeros(len(rewards), dtype=torch.float64).log_softmax(0)

    def loss(logits: Tensor) -> Tensor:
        ratios = logits.log_softmax(0) - uniform
        return judged_loss("cdpo", ratios, rewards, beta=beta, divergence=divergence, order=order)

    return minimize(uniform, loss).softmax(0)


def mean_rewards(divergence: str, *, order: float = 0.5, beta: float = 1.0) -> Numbers:
    """Return the mean reward of `optimum` for each of several rewards."""
    return [
        (optimum(rewards, divergence, order, beta) * torch.tensor(rewards)).sum().item()
        for rewards in CASES
    ]


def entropies(divergence: str, *, order: float = 0.5, beta: float = 1.0) -> Numbers:
    """Return the entropy of `optimum` in nats for each of several rewards."""
    optima = (optimum(rewards, divergence, order, beta) for rewards in CASES)
    return [-(policy * policy.log()).sum().item() for policy in optima]
