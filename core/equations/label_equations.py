"""Losses of labelled answers beside their equations in plain numbers."""

from collections.abc import Callable, Mapping
from itertools import product
from math import exp, log

import torch

from core.equations.advantage_equations import Numbers, error
from core.losses.unpaired import UNPAIRED, baseline, unpaired_losses

REWARDS, SHIFTS, WEIGHTS = (-2.5, -0.3, 0.0, 0.6, 3.0), (-0.8, 0.0, 0.4), (1.0, 1.7)
RATIOS = ((0.5, -0.2, 0.9), (-1.0, 0.4), (0.0,))  # of mismatched answers


def _saturating(margin: float) -> float:
    return 1 - 1 / (1 + exp(-margin))


def _logistic(margin: float) -> float:
    return log(1 + exp(-margin))


STATED: Mapping[str, Callable[[float], float]] = {
    "kto": _saturating,
    "apo_zero_unpaired": _saturating,
    "bco": _logistic,
}


def loss_errors() -> Numbers:
    """Return the error of every loss at each shift and weight, of answers of both labels."""
    answers = [*product(REWARDS, (True, False))]
    rewards = torch.tensor([reward for reward, _ in answers], dtype=torch.float64)
    labels = torch.tensor([label for _, label in answers])
    errors: Numbers = []
    for name, shift, weight in product(UNPAIRED, SHIFTS, WEIGHTS):
        weights = torch.full_like(rewards, weight)
        losses = unpaired_losses(name, rewards, labels, shift=shift, weights=weights)
        margins = [reward - shift if label else shift - reward for reward, label in answers]
        errors.append(error(losses, [weight * STATED[name](margin) for margin in margins]))
    return errors


def baseline_errors() -> Numbers:
    """Return the error of KTO's reference point: the mean log-ratio, and 0 where it is negative."""
    stated = [0.4, 0.0, 0.0]
    points = [baseline(sum(ratios), len(ratios)) for ratios in RATIOS]
    return [error(torch.tensor(points, dtype=torch.float64), stated)]
