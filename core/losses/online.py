"""Losses of answers that are sampled and judged while training: online DPO, XPO and Nash-MD."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import PreferenceLosses, PreferenceSettings, preference_losses
from core.shapes import B, N


@dataclass(frozen=True)
class OnlineLoss:
    """A row of `ONLINE_LOSSES`: the name of a row of `PREFERENCES`."""

    loss: str
    doc: str


# Losses of log-ratios of whole answers, under TRL's names; TRL has no hinge.
ONLINE_LOSSES = {
    "sigmoid": OnlineLoss("sigmoid", "DPO, arXiv 2305.18290"),
    "ipo": OnlineLoss("ipo_sum", "IPO as printed, arXiv 2310.12036"),
    "hinge": OnlineLoss("hinge", "SLiC, arXiv 2305.10425"),
}


@dataclass(frozen=True)
class Tie:
    """A row of `TIES`: half the margin that a pair of equal rewards counts with."""

    half: float
    doc: str


TIES = {
    "first": Tie(0.5, "the first one is chosen, as in TRL"),
    "skipped": Tie(0.0, "the pair has no loss"),
}


def ordered_pairs(answers: Answers, advantages: N) -> Pairs:
    """Return 2N answers, of which each two make a pair, as N pairs of the better and the other.

    Args:
        answers: The answers, those of a pair one after the other.
        advantages: Chance of each answer to be preferred to the other, minus 1/2; of equal ones
            the first counts as the better.
    """
    first_loses = (advantages[::2] < advantages[1::2]).long()
    starts = torch.arange(0, len(advantages), 2, device=advantages.device)
    return Pairs(
        chosen=rows_of(answers, starts + first_loses),
        rejected=rows_of(answers, starts + 1 - first_loses),
    )


def rows_of(answers: Answers, rows: torch.Tensor | slice) -> Answers:
    """Return some of the answers."""
    chosen = {name: getattr(answers, name)[rows] for name in ("logps", "ref_logps", "mask")}
    return replace(answers, **chosen)


def online_dpo_losses(
    answers: Answers, advantages: N, loss_type: str, beta: float
) -> PreferenceLosses:
    """Return the loss of each pair of 2N sampled answers, see `ordered_pairs`; arXiv 2402.04792.

    A pair without advantages, which is not judged, has loss 0.
    """
    settings = PreferenceSettings(loss_type=[ONLINE_LOSSES[loss_type].loss], beta=beta)
    result = preference_losses(ordered_pairs(answers, advantages), settings)
    is_judged = advantages[::2] != 0
    return replace(result, losses=torch.where(is_judged, result.losses, 0.0))


def exploration(answers: Answers, alpha: float) -> B:
    """Return alpha log pi(y) of the second answer of each pair, a reference's; arXiv 2405.21046."""
    second = rows_of(answers, slice(1, None, 2))
    return alpha * (second.logps * second.mask).sum(-1)


def whole_ratio(answers: Answers) -> B:
    """Return log(pi / pi_ref) of an answer times its log-probability; arXiv 2312.00886 s7."""
    logps, ratios = answers.logps * answers.mask, token_ratios(answers)
    return ratios.sum(-1) * logps.sum(-1)


def own_ratio(answers: Answers) -> B:
    """Return the sum of log(pi / pi_ref) of a token times its log-probability, as in TRL."""
    return (token_ratios(answers) * answers.logps * answers.mask).sum(-1)


def token_ratios(answers: Answers) -> torch.Tensor:
    """Return log(pi / pi_ref) of each token (B, T), without gradient and 0 on padding."""
    return (answers.logps.detach() - answers.ref_logps) * answers.mask


@dataclass(frozen=True)
class KLWeight:
    """A row of `KL_WEIGHTS`: a sum whose gradient is an estimate of that of the KL."""

    surrogate: Callable[[Answers], B]
    doc: str


KL_WEIGHTS = {
    "sequence": KLWeight(whole_ratio, "that of the whole answer, arXiv 2312.00886"),
    "token": KLWeight(own_ratio, "that of the token alone, as in TRL 1.13"),
}


@dataclass(frozen=True, kw_only=True)
class NashLosses:
    """Losses (B,) of Nash-MD, and the part of the preference in them."""

    losses: B
    score: B


def nash_md_losses(answers: Answers, advantages: B, tau: float, kl_weight: str) -> NashLosses:
    """Return -(P(y > y') - 1/2 - tau log(pi / pi_ref)) log pi(y); arXiv 2312.00886 s7.

    The factor of log pi(y) has no gradient.

    Args:
        answers: Answers y of the policy.
        advantages: P(y > y') - 1/2 against an answer y' of the mixture.
        tau: Weight of the KL to the reference.
        kl_weight: A key of `KL_WEIGHTS`.
    """
    score = advantages * (answers.logps * answers.mask).sum(-1)
    return NashLosses(losses=tau * KL_WEIGHTS[kl_weight].surrogate(answers) - score, score=score)
