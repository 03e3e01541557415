"""Completions whose losses are computed by the equations in plain numbers as well."""

from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import Tensor

from core.losses.batch import Rollout

ADVANTAGES = (-2.0, -0.5, 0.5, 2.0)
LOG_RATIOS = (-25.0, -0.4, -0.05, 0.1, 0.5, 1.8, 16.0, 24.0)
OLD = (-1.0, -2.5, -2.0)  # log-probabilities of the tokens under the policy of the rollout
ENGINE = (0.5, 1e-9, 2.0)  # ratios of that policy to the one that sampled
KEPT = (1.0, 0.0, 1.0)  # which tokens are selected by their entropy
Tokens = Sequence[float]


def rollout() -> tuple[Rollout, list[Tokens]]:
    """Return completions of one to three tokens, and the log ratios of each without padding."""
    rows = [row for row in product(LOG_RATIOS, repeat=len(OLD)) if len({*row}) > 1]
    lengths = [1 + number % len(OLD) for number in range(len(rows))]
    log_ratios = torch.tensor(rows, dtype=torch.float64)
    old, engine, entropy_mask = (repeated_rows(row, len(rows)) for row in (OLD, ENGINE, KEPT))
    advantages = torch.tensor(ADVANTAGES, dtype=torch.float64).repeat(len(rows))[: len(rows)]
    return Rollout(
        logps=(old + log_ratios).requires_grad_(),
        old_logps=old,
        advantages=advantages.unsqueeze(1),
        mask=(torch.arange(len(OLD)) < torch.tensor(lengths).unsqueeze(1)).double(),
        sampling_ratio=engine,
        entropy_mask=entropy_mask,
    ), [row[:length] for row, length in zip(rows, lengths, strict=True)]


def repeated_rows(row: Sequence[float], count: int) -> Tensor:
    """Return `count` equal rows, in 64 bits."""
    return torch.tensor([row], dtype=torch.float64).repeat(count, 1)


def formula_error(
    values: Tensor, tokens: Sequence[Tokens], formula: Callable[[int, int], float]
) -> float:
    """Return the largest |value - stated| / max(1, |stated|) over the tokens of all completions.

    Args:
        values: of tokens (B, T) or completions (B, 1).
        tokens: of each completion.
        formula: maps the indices of a completion and its token to the stated value.
    """
    rows = values.detach().expand(len(tokens), len(OLD)).tolist()
    pairs = [(rows[i][t], formula(i, t)) for i, x in enumerate(tokens) for t in range(len(x))]
    return max(abs(value - stated) / max(1.0, abs(stated)) for value, stated in pairs)


def mean(values: Sequence[float]) -> float:
    """Return the mean of numbers; 0 of none."""
    return sum(values) / max(1, len(values))


def clip(x: float, low: float, high: float) -> float:
    """Return a number, or the bound that it exceeds."""
    return min(max(x, low), high)
