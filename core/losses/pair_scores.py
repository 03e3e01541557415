"""Scores of both answers of preference pairs, alone or among all pairs of an optimizer step."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from core.shapes import B


@dataclass(frozen=True, kw_only=True)
class Side:
    """Inputs of a link from the chosen or the rejected answers, each of shape (B,).

    Attributes:
        logp: Log-probability of the answer under the policy.
        ref_logp: The same under the reference.
        score: The derivative f' of the divergence at the ratio of the two.
        length: The number of tokens.
        total: Log-probability under the policy of all tokens, whatever `ld_alpha` is.
        win_rates: See `Answers`.
    """

    logp: B
    ref_logp: B
    score: B
    length: B
    total: B
    win_rates: B | None = None

    @property
    def ratio(self) -> B:
        """log(pi / pi_ref) of the answer."""
        return self.logp - self.ref_logp


NUMBERS = ("logp", "ref_logp", "score", "length", "total")  # fields of a side that all links have


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Inputs of a link: both sides of the pairs."""

    chosen: Side
    rejected: Side

    @property
    def gap(self) -> B:
        """Difference of the scores, log-ratios with the reverse KL."""
        return self.chosen.score - self.rejected.score

    @property
    def mean_gap(self) -> B:
        """Difference of the scores, each divided by the length of its answer."""
        chosen, rejected = self.chosen, self.rejected
        return chosen.score / chosen.length - rejected.score / rejected.length

    @property
    def rows(self) -> Tensor:
        """The `NUMBERS` (B, 10) of chosen, then of rejected answers."""
        sides = (self.chosen, self.rejected)
        return torch.stack([getattr(side, name) for side in sides for name in NUMBERS], 1)


class Step(NamedTuple):
    """All pairs of an optimizer step or of an evaluation, whose loss reads them together.

    Attributes:
        rows: `Scores.rows` (N, 10) of the pairs, without gradient.
        first: Where the pairs of the micro-batch begin in it; None if they are not looked for.
    """

    rows: Tensor
    first: int | None

    def around(self, scores: Scores) -> Scores:
        """Return the inputs of N links, of which those of the micro-batch have gradients."""
        rows, first = self.rows, self.first
        if first is not None:
            own = scores.rows
            rows = torch.cat([rows[:first].to(own), own, rows[first + len(own) :].to(own)])
        chosen, rejected = (
            Side(**dict(zip(NUMBERS, side.unbind(1), strict=True))) for side in rows.chunk(2, 1)
        )
        return Scores(chosen=chosen, rejected=rejected)
