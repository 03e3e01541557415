"""Answers of preference pairs by token, and their log-probabilities."""

from dataclasses import dataclass

import torch

from core.losses.masked import masked_mean
from core.shapes import BT, B, Mask


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The chosen or the rejected answers of B pairs, of at most T tokens.

    Attributes:
        logps: Log-probabilities of the tokens under the policy, with gradient.
        ref_logps: The same under the reference; or, of shape (B,), their sums, in which `ld_alpha`
            has had its effect.
        mask: 1 on tokens of the answer.
        alignment: What WPO compares the policy's log-probability of each token with, a row of
            `ALIGNMENTS`.
        win_rates: Chance (B,) of each answer to win against one of the reference, for SPPO.
    """

    logps: BT
    ref_logps: BT | B
    mask: Mask
    alignment: BT | None = None
    win_rates: B | None = None

    @property
    def lengths(self) -> B:
        """The number of tokens of each answer, at least 1."""
        return self.mask.sum(-1).clamp(min=1).to(self.logps.dtype)

    def log_weight(self) -> B:
        """Return the mean of log p(y_t) minus the alignment, without gradient; arXiv 2406.11827.

        Raises:
            TypeError: there is no `alignment`.
        """
        if self.alignment is None:
            raise TypeError("use_weighting needs the alignment of each token, see ALIGNMENTS")
        return masked_mean(self.logps.detach() - self.alignment, self.mask)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of answers to the same prompts."""

    chosen: Answers
    rejected: Answers


def sums_of(pairs: Pairs, alpha: float | None) -> tuple[list[B], list[B]]:
    """Return the log-probabilities of chosen and rejected answers, under policy and reference.

    With `alpha` tokens after the first min(|y_w|, |y_l|) count alpha times; arXiv 2409.06411
    eq. 11.
    """
    shared = torch.minimum(pairs.chosen.lengths, pairs.rejected.lengths)
    logps, ref_logps = list[B](), list[B]()
    for answers in (pairs.chosen, pairs.rejected):
        weights = tail_weights(answers.mask, shared, alpha)
        reference = answers.ref_logps
        logps.append((answers.logps * weights).sum(-1))
        ref_logps.append(reference if reference.dim() == 1 else (reference * weights).sum(-1))
    return logps, ref_logps


def tail_weights(mask: Mask, shared: B, alpha: float | None) -> BT:
    """Return 1 on the first `shared` (B,) tokens of the mask and alpha on later ones (B, T)."""
    weights = mask.to(shared.dtype)
    if alpha is None:
        return weights
    is_tail = mask.cumsum(-1) > shared.unsqueeze(-1)
    return torch.where(is_tail, alpha * weights, weights)
