"""Divergences of a student S from a teacher T over the vocabulary, one number per token.

Arguments are log-probabilities (N, V), -inf for a token that is impossible. A token that is
impossible under both models adds 0. No sum is clamped: a token that only one model can produce
makes a KL infinite.
"""

from collections.abc import Callable
from math import log, log1p

import torch
from torch import Tensor

from core.shapes import BT, BTV, N1, NV, Mask, N
from eval.errors import BadValue


def kl(logps: NV, other: NV) -> N:
    """Return KL(P || Q) = sum_v P(v) (log P(v) - log Q(v)), with 0 log 0 = 0, from both logarithms.

    The gradient is through both.
    """
    gaps = torch.where(logps.isneginf(), 0.0, logps - other)
    return (logps.exp() * gaps).sum(-1)


def divergence(logps: NV, teacher_logps: NV, beta: float) -> N:
    """Return D_beta = beta KL(T || M) + (1 - beta) KL(S || M) of each token.

    M = (1 - beta) S + beta T; arXiv 2306.13649 eq. 1. D_beta is 0 in the limits, in place of which
    beta = 0 is the forward KL(T || S) and beta = 1 the reverse KL(S || T): divided by beta and by
    1 - beta, D_beta tends to these. It is at most the entropy of (beta, 1 - beta).

    Raises:
        BadValue: beta is outside [0, 1].
    """
    if not 0 <= beta <= 1:
        raise BadValue(f"beta={beta:g}: expected 0 (forward KL) to 1 (reverse KL)")
    if beta == 0:
        return kl(teacher_logps, logps)
    if beta == 1:
        return kl(logps, teacher_logps)
    mixed = mixture(logps, teacher_logps, beta)
    return beta * kl(teacher_logps, mixed) + (1 - beta) * kl(logps, mixed)


def mixture(logps: NV, teacher_logps: NV, beta: float) -> NV:
    """Return log((1 - beta) S + beta T), and 0 for a token that is impossible under both."""
    impossible = logps.isneginf() & teacher_logps.isneginf()
    student, teacher = (x.masked_fill(impossible, 0.0) for x in (logps, teacher_logps))
    return torch.logaddexp(student + log1p(-beta), teacher + log(beta))


def on_top_k(logps: NV, teacher_logps: NV, k: int, *, has_tail: bool) -> tuple[NV, NV]:
    """Return both models on the student's `k` most likely tokens, see `on_support`.

    Raises:
        BadValue: `k` is not within the vocabulary, or is 1 without a tail: a single token has
            probability 1 under both models, and every divergence is 0.
    """
    check_top_k(k, logps.size(-1), has_tail=has_tail)
    return on_support(logps, teacher_logps, most_likely(logps, k), has_tail=has_tail)


def check_top_k(k: int, vocabulary: int, *, has_tail: bool) -> None:
    """Refuse a number of tokens on which no divergence can be, see `on_top_k`.

    Raises:
        BadValue: it is too large, or 1 without a tail.
    """
    least = 1 if has_tail else 2
    if not least <= k <= vocabulary:
        raise BadValue(
            f"top-k of {k} {'with' if has_tail else 'without'} a tail: expected {least} to "
            f"{vocabulary}, the size of the vocabulary"
        )


def most_likely(logps: NV, k: int) -> Tensor:
    """Return a mask (N, V) of the `k` most likely tokens."""
    return torch.zeros_like(logps, dtype=torch.bool).scatter(-1, logps.topk(k).indices, True)


def on_support(logps: NV, teacher_logps: NV, support: Tensor, *, has_tail: bool) -> tuple[NV, NV]:
    """Return both models' log-probabilities of some tokens, -inf for the others.

    With a tail there is a last column with the mass of all other tokens, (N, V + 1), so that a
    divergence is at most that over the vocabulary. Otherwise they are renormalised, (N, V).

    Args:
        logps: The student (N, V).
        teacher_logps: The teacher (N, V).
        support: Boolean mask (N, V) of the tokens.
        has_tail: Whether there is a tail.
    """
    kept = (x.masked_fill(~support, -torch.inf) for x in (logps, teacher_logps))
    if not has_tail:
        student, teacher = (x - log_mass(x) for x in kept)
        return student, teacher
    tails = (log_mass(x.masked_fill(support, -torch.inf)) for x in (logps, teacher_logps))
    student, teacher = (torch.cat(pair, -1) for pair in zip(kept, tails, strict=True))
    return student, teacher


def log_mass(logps: NV) -> N1:
    """Return log sum_v P(v); -inf, and no gradient, where all tokens are impossible."""
    is_empty = logps.isneginf().all(-1, keepdim=True)
    return (
        logps.masked_fill(is_empty, 0.0)
        .logsumexp(-1, keepdim=True)
        .masked_fill(is_empty, -torch.inf)
    )


def sampled_reverse_kl(logps: BT, teacher_logps: BT) -> BT:
    """Return sg(log S - log T) log S of tokens that the student sampled.

    Its expected gradient is that of the reverse KL at each prefix.
    """
    return (logps - teacher_logps).detach() * logps


def token_divergences(
    logits: BTV, teacher_logits: BTV, mask: Mask, measure: Callable[[NV, NV], N]
) -> BT:
    """Return `measure` of the log-probabilities of both models on trained tokens, 0 elsewhere.

    Logits of other tokens, such as padding, are not read.
    """
    trained = mask.bool()
    pair = (x[trained].log_softmax(dim=-1) for x in (logits, teacher_logits))
    return logits.new_zeros(mask.shape).masked_scatter(trained, measure(*pair))
