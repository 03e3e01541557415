"""Losses of rewards of pairs, of labels of steps and of values, beside their equations."""

from itertools import product
from math import exp, fsum, log

import torch

from core.equations.advantage_equations import Numbers, error
from core.losses.scoring import PAIR_TERMS, PairRewards, pair_losses, step_labels, token_value

REWARDS = (-2.5, -0.3, 0.0, 0.6, 3.0)  # of chosen and of rejected answers
MARGINS = (None, 0.0, 1 / 3, 3.0, -0.7)
WEIGHTS = {"bradley_terry": 1.0, "centred": 0.01}
LOGITS = ((0.4, -1.2), (-3.0, 0.5), (0.0, 0.0), (2.0, 1.5))  # of a wrong and of a right step


def _stated(chosen: float, rejected: float, margin: float | None) -> dict[str, float]:
    return {
        "bradley_terry": log(1 + exp((margin or 0.0) - chosen + rejected)),
        "centred": (chosen + rejected) ** 2,
    }


def pair_errors() -> Numbers:
    """Return the error of every term of the loss of a pair, and of their sum, at each margin."""
    pairs = [*product(REWARDS, REWARDS)]
    chosen, rejected = torch.tensor(pairs, dtype=torch.float64).T
    errors: Numbers = []
    for margin in MARGINS:
        margins = None if margin is None else torch.full_like(chosen, margin)
        rewards = PairRewards(chosen=chosen, rejected=rejected, margin=margins)
        stated = [_stated(*pair, margin) for pair in pairs]
        errors += [
            error(row.loss(rewards), [terms[name] for terms in stated])
            for name, row in PAIR_TERMS.items()
        ]
        sums = [fsum(WEIGHTS[name] * terms[name] for name in WEIGHTS) for terms in stated]
        errors.append(error(pair_losses(rewards, WEIGHTS), sums))
    return errors


def step_errors() -> Numbers:
    """Return the error of the loss of a step with each label."""
    logits = torch.tensor(LOGITS, dtype=torch.float64)
    return [
        error(
            step_labels(logits, torch.full((len(LOGITS),), label)),
            [log(fsum(map(exp, row))) - row[label] for row in LOGITS],
        )
        for label in (0, 1)
    ]


def value_errors() -> Numbers:
    """Return the error of the loss of a value of a token with each label."""
    values = torch.tensor(REWARDS, dtype=torch.float64)
    return [
        error(
            token_value(values, torch.full_like(values, label)),
            [value * value - 2 * value * label + label * label for value in REWARDS],
        )
        for label in (0.0, 1.0)
    ]
