"""Laws of means, KL estimates and losses of values and labels, beside their equations."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import exp, log
from statistics import variance

import torch
from torch import Tensor

from core.equations.advantage_equations import Numbers, error
from core.losses.aggregate import AGGREGATES, Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.kl import ESTIMATORS, next_coefficient
from core.losses.perception import perception_objective
from core.losses.policy import policy_loss
from core.losses.regression import implicit_rewards
from core.losses.supervised import SUPERVISED, smooth_labels
from core.losses.value import clipped_value_loss, clipped_values, explained_variance

LOSSES = ((0.4, -1.2, 0.9), (2.0, 0.3, -0.7), (-0.5, 1.4, 3.0))
LENGTHS = ((3, 2, 1), (1, 0, 0), (2, 3, 0))  # of the completions of a batch
ACCUMULATION, MICRO_BATCHES, PROCESSES, LIMIT = 2, 8, 4, 7
GROUP_TOKENS = (5.0, 5.0, 3.0)
NUMBERS = (-2.0, -0.6, 0.1, 0.8, 1.5)
Rows = Sequence[Sequence[float]]

# From the losses of the trained tokens of each completion to their mean, before accumulation.
STATED: Mapping[str, Callable[[Rows], float]] = {
    "sequence_mean": lambda x: sum(sum(row) / max(1, len(row)) for row in x) / len(x),
    "token_mean": lambda x: sum(map(sum, x)) / max(1, sum(map(len, x))),
    "constant_length": lambda x: sum(map(sum, x)) / (len(x) * LIMIT),
    "global_token_mean": lambda x: (
        sum(map(sum, x)) * MICRO_BATCHES * PROCESSES / max(1, sum(map(len, x)))
    ),
    "token_sum": lambda x: sum(map(sum, x)) / len(x),
    "prompt_mean": lambda x: (
        sum(sum(row) / tokens for row, tokens in zip(x, GROUP_TOKENS, strict=True)) / len(x)
    ),
}


def _mask(lengths: Sequence[int]) -> Tensor:
    return (torch.arange(3) < torch.tensor(lengths).unsqueeze(1)).double()


def aggregate_errors() -> Numbers:
    """Return the error of each mean of token losses, for batches of other lengths."""
    losses = torch.tensor(LOSSES, dtype=torch.float64)
    errors: Numbers = []
    for name, lengths in product(AGGREGATES, LENGTHS):
        mask = _mask(lengths)
        scale = Scale(
            rollout_tokens=mask.sum(),
            accumulation=ACCUMULATION,
            micro_batches=MICRO_BATCHES,
            processes=PROCESSES,
            max_length=LIMIT,
            group_tokens=torch.tensor(GROUP_TOKENS, dtype=torch.float64),
        )
        rows = [row[:length] for row, length in zip(LOSSES, lengths, strict=True)]
        stated = STATED[name](rows) / ACCUMULATION
        errors.append(error(AGGREGATES[name].mean(losses, mask, scale), [stated]))
    return errors


STATED_KL: Mapping[str, Callable[[float], float]] = {
    "k1": lambda log_u: -log_u,
    "k2": lambda log_u: log_u**2 / 2,
    "k3": lambda log_u: exp(log_u) - log_u - 1,
}


def kl_errors() -> Numbers:
    """Return the error of each KL estimate, for several log u = log(pi_ref / pi)."""
    log_u = torch.tensor([NUMBERS], dtype=torch.float64)
    logps = torch.full_like(log_u, -1.5)
    return [
        error(ESTIMATORS[name](logps, logps + log_u), [stated(x) for x in NUMBERS])
        for name, stated in STATED_KL.items()
    ]


def penalised_errors() -> Numbers:
    """Return the error of -mean(r A - beta k3) of GRPO, by the ratio times k3 and by k3 alone."""
    kl = [STATED_KL["k3"](x) for x in (0.3, -0.4, 0.1)]
    ratios = [exp(x) for x in (0.05, -0.1, 0.1)]
    moved, reference = (
        torch.tensor([row], dtype=torch.float64) for row in ((0.05, -0.1, 0.1), (0.3, -0.4, 0.1))
    )
    old = torch.full((1, 3), -1.0, dtype=torch.float64)
    r = Rollout(
        logps=old + moved,
        old_logps=old,
        advantages=torch.tensor([[0.5]], dtype=torch.float64),
        mask=torch.ones(1, 3),
        ref_logps=old + moved + reference,
    )
    errors: Numbers = []
    for corrected in (True, False):
        config = PolicyConfig(beta=0.2, use_bias_correction_kl=corrected)
        loss = policy_loss(r, config, Scale(rollout_tokens=r.mask.sum())).loss
        terms = [
            0.5 * ratio - 0.2 * k * (ratio if corrected else 1)
            for ratio, k in zip(ratios, kl, strict=True)
        ]
        errors.append(error(loss, [-sum(terms) / 3]))
    return errors


def adaptive_kl_errors() -> Numbers:
    """Return the error of the KL weight after a KL below, near and above its target."""
    target, kls = 0.06, (0.039, 0.041, 0.089, 0.091)
    stated = (0.5, 1.0, 1.0, 2.0)
    return [abs(next_coefficient(1.0, x, target) - y) for x, y in zip(kls, stated, strict=True)]


def supervised_errors() -> Numbers:
    """Return the errors of -log pi and -pi log pi, and of smoothed labels."""
    chances = (0.9, 0.5, 0.01)
    logps = torch.tensor(chances, dtype=torch.float64).log()
    share, others = 0.1, (0.3, 0.2)  # of a label, and the probabilities of two other tokens
    logits = torch.tensor([[log(p), *map(log, others)] for p in chances], dtype=torch.float64) + 2.0
    totals = [p + sum(others) for p in chances]
    spread = [
        (1 - share) * -log(p / total) - share * sum(log(q / total) for q in (p, *others)) / 3
        for p, total in zip(chances, totals, strict=True)
    ]
    likelihoods = logits.logsumexp(-1) - logits[:, 0]
    return [
        error(smooth_labels(likelihoods, logits, share), spread),
        error(SUPERVISED["nll"].loss(logps), [-log(p) for p in chances]),
        error(SUPERVISED["dft"].loss(logps), [-p * log(p) for p in chances]),
    ]


def value_errors(width: float = 0.5) -> Numbers:
    """Return errors of the loss of values, of which it clips, and of their explained variance."""
    grid = [*product(NUMBERS, NUMBERS, NUMBERS)]
    values, old, returns = (
        torch.tensor([column], dtype=torch.float64) for column in zip(*grid, strict=True)
    )
    squares = [((v - r) ** 2, (min(max(v, o - width), o + width) - r) ** 2) for v, o, r in grid]
    return [
        error(clipped_value_loss(values, old, returns, width), [max(pair) / 2 for pair in squares]),
        error(clipped_values(values, old, returns, width), [float(b > a) for a, b in squares]),
        *_explained_errors(),
    ]


def _explained_errors() -> Numbers:
    values, returns = (
        torch.tensor([row], dtype=torch.float64)
        for row in ((0.2, 0.9, -0.3, 7.0), (0.5, 1.0, 0.1, -9.0))
    )
    stated = 1 - variance([0.3, 0.1, 0.4]) / variance([0.5, 1.0, 0.1])
    pair = 1 - variance([0.3, 0.1]) / variance([0.5, 1.0])
    masks = (torch.tensor([row]) for row in ((1.0, 1, 1, 0), (1.0, 1, 0, 0), (1.0, 0, 0, 0)))
    return [
        error(explained_variance(values, returns, mask), [expected])
        for mask, expected in zip(masks, (stated, pair, 0.0), strict=True)
    ]


def perception_errors() -> Numbers:
    """Return the error of PAPO's objective gamma KL - eta H - eta' H' of each answer."""
    rows, masked = (
        ((-1.0, -0.4, -2.0), (-0.3, -0.8, -0.1)),
        ((-1.2, -0.9, -0.2), (-0.5, -0.7, -3.0)),
    )
    lengths, (gamma, eta, eta_masked) = (3, 2), (0.1, 0.3, 0.7)
    stated: Numbers = []
    for logps, masked_logps, length in zip(rows, masked, lengths, strict=True):
        logs = [a - b for a, b in zip(logps[:length], masked_logps[:length], strict=True)]
        kl = sum(exp(x) - x - 1 for x in logs) / length
        entropies = [-sum(row[:length]) / length for row in (logps, masked_logps)]
        stated.append(gamma * kl - eta * entropies[0] - eta_masked * entropies[1])
    objective = perception_objective(
        torch.tensor(rows, dtype=torch.float64),
        torch.tensor(masked, dtype=torch.float64),
        _mask(lengths),
        gamma=gamma,
        eta=eta,
        eta_masked=eta_masked,
    )
    return [error(objective, stated)]


def implicit_errors() -> Numbers:
    """Return the error of beta sum log(pi / pi_ref) of completions of several lengths."""
    logps = torch.tensor(LOSSES, dtype=torch.float64)
    mask, reference = _mask(LENGTHS[0]), logps.flip(0) - 0.5
    stated = [
        0.5 * sum(a - (b - 0.5) for a, b in [*zip(policy_row, reference_row, strict=True)][:length])
        for policy_row, reference_row, length in zip(LOSSES, LOSSES[::-1], LENGTHS[0], strict=True)
    ]
    return [error(implicit_rewards(logps, reference, mask, 0.5), stated)]
