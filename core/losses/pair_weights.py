"""Weights of preference pairs by how likely the policy is to sample their answers: WPO."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from core.losses.paired_answers import Answers, Pairs
from core.shapes import B


@runtime_checkable
class WeightingConfig(Protocol):
    """Settings of the weights, which the config of a trainer has."""

    weighting_side: str
    weighting_clamp: float | None


@dataclass(frozen=True)
class Alignment:
    """A row of `ALIGNMENTS`: what log-probabilities of the tokens of an answer are compared with.

    Attributes:
        doc: Its description.
        of: Maps the log-probabilities (..., V) of the vocabulary at tokens to (...).
        is_zero: Whether it is 0 for all tokens, so that it needs no logits.
    """

    doc: str
    of: Callable[[Tensor], Tensor]
    is_zero: bool = False


def expected_probability(log_probs: Tensor) -> Tensor:
    """Return log sum_v p(v)^2, of the expected probability of a sampled token; arXiv 2406.11827."""
    return (2 * log_probs).logsumexp(-1)


ALIGNMENTS = {
    "sampled": Alignment("a sampled token, in expectation", expected_probability),
    "greedy": Alignment("the most likely token", lambda log_probs: log_probs.amax(-1)),
    "none": Alignment(
        "nothing, so that weights are probabilities",
        lambda log_probs: log_probs.new_zeros(log_probs.shape[:-1]),
        is_zero=True,
    ),
}


@dataclass(frozen=True)
class WeighedSide:
    """A row of `SIDES`: the answers whose weights are multiplied."""

    doc: str
    of: Callable[[Pairs], tuple[Answers, ...]]


SIDES = {
    "both": WeighedSide("both", lambda pairs: (pairs.chosen, pairs.rejected)),
    "chosen": WeighedSide("the chosen one", lambda pairs: (pairs.chosen,)),
    "rejected": WeighedSide("the rejected one", lambda pairs: (pairs.rejected,)),
}


def log_weights(pairs: Pairs, c: WeightingConfig) -> B:
    """Return the logarithm of the weight of each pair, without gradient and before any limit."""
    sides = SIDES[c.weighting_side].of(pairs)
    return torch.stack([side.log_weight() for side in sides]).sum(0)


def limited_weights(logs: B, c: WeightingConfig) -> B:
    """Return the weights of these logarithms, at most `weighting_clamp`."""
    return logs.exp().clamp(max=c.weighting_clamp) if c.weighting_clamp else logs.exp()
