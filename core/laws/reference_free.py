"""Losses of pairs without a reference: their limits and bounds, in 64 bits."""

from itertools import product

import torch
from torch import Tensor

from core.equations.advantage_equations import Numbers
from core.equations.preference_equations import Settings
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import preference_losses
from core.losses.reference_free import (
    CPO_LOSSES,
    AnswerLogps,
    Coefficients,
    reference_free_losses,
)

MEANS = ((-0.4, -0.9), (-1.5, -0.2), (-2.0, -2.5))  # of chosen and rejected answers
SUMS = (-6.0, -2.5, -1.0, -0.2)


def answers_of(logps: Tensor) -> AnswerLogps:
    """Return answers of one token with these log-probabilities, (B,)."""
    return AnswerLogps(logps=logps.unsqueeze(1), mask=torch.ones(len(logps), 1).double())


def from_simpo(*, alpha: float) -> Numbers:
    """Return the loss of AlphaPO minus that of SimPO for each of several pairs."""
    chosen, rejected = (answers_of(x) for x in torch.tensor(MEANS, dtype=torch.float64).T)
    shaped, plain = (
        reference_free_losses(
            chosen, rejected, CPO_LOSSES["simpo"], Coefficients(beta=2.5, margin=0.1, alpha=shape)
        ).losses
        for shape in (alpha, 0.0)
    )
    return (shaped - plain).tolist()


def above_ideal_reference(*, beta: float = 0.5) -> Numbers:
    """Return CPO's loss minus a bound of it for many pairs of log-probabilities.

    The bound is DPO's loss with the ideal policy as its reference, plus beta times the
    log-probability of the rejected answer under the ideal policy; arXiv 2401.08417 app. C.
    """
    columns = torch.tensor([*product(SUMS, repeat=4)], dtype=torch.float64).T
    chosen, rejected, ideal_chosen, ideal_rejected = columns
    row, c = CPO_LOSSES["sigmoid"], Coefficients(beta=beta)
    free = reference_free_losses(answers_of(chosen), answers_of(rejected), row, c).losses
    sides = (
        Answers(logps=x.unsqueeze(1), ref_logps=y.unsqueeze(1), mask=torch.ones(len(x), 1).double())
        for x, y in ((chosen, ideal_chosen), (rejected, ideal_rejected))
    )
    pairs = Pairs(chosen=next(sides), rejected=next(sides))
    ideal = preference_losses(pairs, Settings(["sigmoid"], beta=beta, label_smoothing=0.0)).losses
    return (free - ideal - beta * ideal_rejected).tolist()
