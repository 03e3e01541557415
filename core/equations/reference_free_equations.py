"""Losses of preference pairs without a reference beside their equations in plain numbers."""

from collections.abc import Callable, Mapping
from itertools import product
from math import exp, fsum, log

import torch

from core.equations.advantage_equations import Numbers, error
from core.equations.preference_equations import CHOSEN, REJECTED, token_answers
from core.losses.reference_free import (
    CPO_LOSSES,
    ORPO_LOSS,
    TPO_LOSSES,
    AnswerLogps,
    Coefficients,
    ReferenceFree,
    negative_log_likelihood,
    reference_free_losses,
)

ROWS: Mapping[str, ReferenceFree] = {**CPO_LOSSES, **TPO_LOSSES, "orpo": ORPO_LOSS}
SHAPES = (0.0, 0.25, 1.0)  # alpha of AlphaPO
COEFFICIENTS = {"beta": 0.7, "label_smoothing": 0.1, "margin": 0.4}


def _smoothed(x: float, c: Coefficients) -> float:
    wrong, right = log(1 + exp(x)), log(1 + exp(-x))
    return (1 - c.label_smoothing) * right + c.label_smoothing * wrong


def _squared(gap: float, c: Coefficients) -> float:
    return (gap - 0.5 / c.beta) ** 2


def _with_margin(gap: float, c: Coefficients) -> float:
    return _smoothed(c.beta * gap - c.margin, c)


STATED: Mapping[str, Callable[[float, Coefficients], float]] = {
    "sigmoid": lambda gap, c: _smoothed(c.beta * gap, c),
    "hinge": lambda gap, c: max(0.0, 1 - c.beta * gap),
    "ipo": _squared,
    "simpo": _with_margin,
    "tpo-l": _with_margin,
    "orpo": lambda gap, c: c.beta * log(1 + exp(-gap)),
}


def _score(tokens: list[float], row: ReferenceFree, alpha: float) -> float:
    """Return the score of an answer: log-odds for ORPO, else the shaped log-probability."""
    logp = fsum(tokens) / (len(tokens) if row.averages else 1)
    if row is ORPO_LOSS:
        return log(exp(logp) / (1 - exp(logp)))
    return (1 - exp(-alpha * logp)) / alpha if alpha else logp


def reference_free_errors() -> Numbers:
    """Return the errors of every loss without a reference, of its metrics and of a likelihood."""
    sides = [
        AnswerLogps(logps=a.logps, mask=a.mask) for a in map(token_answers, (CHOSEN, REJECTED))
    ]
    errors = [error(negative_log_likelihood(sides[0]), [-fsum(row) for row in CHOSEN])]
    for (name, row), alpha in product(ROWS.items(), SHAPES):
        c = Coefficients(**COEFFICIENTS, alpha=0.0 if row is ORPO_LOSS else alpha)
        gaps = [
            _score([*a], row, alpha) - _score([*b], row, alpha)
            for a, b in zip(CHOSEN, REJECTED, strict=True)
        ]
        found = reference_free_losses(sides[0], sides[1], row, c)
        errors.append(error(found.losses, [STATED[name](gap, c) for gap in gaps]))
        errors += [
            error(
                active(torch.tensor(gaps), c), [float(STATED["hinge"](gap, c) > 0) for gap in gaps]
            )
            for active in row.metrics.values()
        ]
    return errors
