"""Losses of labelled answers beside the loss of their pair, in 64 bits."""

from itertools import product

import torch

from core.equations.advantage_equations import Numbers
from core.equations.preference_equations import Settings
from core.laws.preference_optima import pairs_of
from core.losses.preference import preference_losses
from core.losses.unpaired import unpaired_losses

RATIOS = (-8.0, -1.2, -0.3, 0.0, 0.5, 2.0, 8.0)  # of chosen and of rejected answers
SHIFTS = (-6.0, -0.4, 0.0, 0.05, 3.0)


def above_dpo(*, beta: float = 0.5) -> Numbers:
    """Return BCO's loss of both answers minus DPO's loss of the pair, for every pair and shift.

    The bound of arXiv 2404.04656: with the rewards a of the chosen and b of the rejected answer,
    less the shift, the difference is log(1 + (exp(-a) + exp(b)) / (1 + exp(b - a))).
    """
    chosen, rejected = torch.tensor([*product(RATIOS, RATIOS)], dtype=torch.float64).T
    settings = Settings(["sigmoid"], beta=beta, label_smoothing=0.0)
    of_pairs = preference_losses(pairs_of(chosen, rejected), settings).losses
    is_chosen = torch.ones_like(chosen, dtype=torch.bool)
    differences: Numbers = []
    for shift in SHIFTS:
        one = unpaired_losses("bco", beta * chosen, is_chosen, shift=shift)
        other = unpaired_losses("bco", beta * rejected, ~is_chosen, shift=shift)
        differences += (one + other - of_pairs).tolist()
    return differences
