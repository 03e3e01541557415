"""Losses of online pairs and of Nash-MD beside their equations in plain numbers."""

from collections.abc import Sequence
from itertools import product
from math import exp, fsum, log

import torch

from core.equations.advantage_equations import Numbers, error
from core.losses.online import (
    KL_WEIGHTS,
    ONLINE_LOSSES,
    exploration,
    nash_md_losses,
    online_dpo_losses,
)
from core.losses.paired_answers import Answers
from core.rollout.native.mixture import geometric_mixture

Tokens = Sequence[Sequence[float]]
# Log-probabilities of tokens of answers under policy and reference; each two answers are a pair.
LOGPS: Tokens = ((-1.0, -0.5), (-0.3,), (-2.0, -0.1, -0.7), (-1.5, -0.2, -0.9), (-0.4,), (-3.0,))
REF_LOGPS: Tokens = (
    (-1.4, -0.2),
    (-1.3,),
    (-0.2, -2.1, -0.3),
    (-0.5, -0.9, -0.1),
    (-2.4,),
    (-1.0,),
)
ADVANTAGES = (0.5, -0.5, -0.2, 0.2, 0.0, 0.0)  # the last pair is not judged
BETA, ALPHA, TAU, WIDTH = 0.3, 0.7, 0.05, 3
POLICY, REFERENCE, SHARES = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.0, 0.25, 1.0)


def _stated_loss(name: str, gap: float) -> float:
    return {
        "sigmoid": log(1 + exp(-BETA * gap)),
        "ipo": (gap - 0.5 / BETA) ** 2,
        "hinge": max(0.0, 1 - BETA * gap),
    }[name]


def _ratios() -> Numbers:
    return [fsum(a) - fsum(b) for a, b in zip(LOGPS, REF_LOGPS, strict=True)]


def _stated_pairs(name: str) -> Numbers:
    pairs = zip(_ratios()[::2], _ratios()[1::2], ADVANTAGES[::2], strict=True)
    return [
        _stated_loss(name, first - second if half > 0 else second - first) if half else 0.0
        for first, second, half in pairs
    ]


def _answers() -> Answers:
    logps, references = (
        torch.tensor([[*row, *[0.0] * (WIDTH - len(row))] for row in rows], dtype=torch.float64)
        for rows in (LOGPS, REF_LOGPS)
    )
    lengths = torch.tensor([[len(row)] for row in LOGPS])
    return Answers(logps=logps, ref_logps=references, mask=(torch.arange(WIDTH) < lengths).double())


def online_errors() -> Numbers:
    """Return the error of every loss of online pairs, alone and with the bonus of XPO."""
    advantages = torch.tensor(ADVANTAGES, dtype=torch.float64)
    bonus, errors = [ALPHA * fsum(row) for row in LOGPS[1::2]], list[float]()
    for name in ONLINE_LOSSES:
        losses, stated = (
            online_dpo_losses(_answers(), advantages, name, BETA).losses,
            _stated_pairs(name),
        )
        errors.append(error(losses, stated))
        together = [loss + term for loss, term in zip(stated, bonus, strict=True)]
        errors.append(error(losses + exploration(_answers(), ALPHA), together))
    return errors


def nash_errors() -> Numbers:
    """Return the error of the loss of Nash-MD with each weight of the KL."""
    advantages = torch.tensor(ADVANTAGES, dtype=torch.float64)
    rows = [*zip(LOGPS, REF_LOGPS, ADVANTAGES, strict=True)]
    kl = {
        "sequence": [(fsum(a) - fsum(b)) * fsum(a) for a, b, _ in rows],
        "token": [fsum((x - y) * x for x, y in zip(a, b, strict=True)) for a, b, _ in rows],
    }
    return [
        error(
            nash_md_losses(_answers(), advantages, TAU, name).losses,
            [
                TAU * term - half * fsum(a)
                for term, (a, _, half) in zip(kl[name], rows, strict=True)
            ],
        )
        for name in KL_WEIGHTS
    ]


def mixture_errors() -> Numbers:
    """Return the error of the probabilities of geometric mixtures of two models."""
    policy, reference = (torch.tensor(p, dtype=torch.float64).log() for p in (POLICY, REFERENCE))
    errors = list[float]()
    for share, scale in product(SHARES, (0.0, 3.0)):
        mixed = geometric_mixture(policy + scale, reference - scale, share).softmax(-1)
        parts = [p ** (1 - share) * q**share for p, q in zip(POLICY, REFERENCE, strict=True)]
        errors.append(error(mixed, [part / fsum(parts) for part in parts]))
    return errors
