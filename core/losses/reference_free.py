"""Losses of preference pairs without a reference: scores of both answers, and a link of their gap.

The likelihood of an answer that CPO, ORPO and TPO add is `negative_log_likelihood`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch

from core.losses.divergence_scores import alpha_divergence, log_sigmoid
from core.losses.masked import masked_mean
from core.losses.preference import smoothed
from core.shapes import BT, B, Mask


@dataclass(frozen=True, kw_only=True)
class AnswerLogps:
    """Log-probabilities (B, T) of the tokens of B answers, and their mask, 1 on the tokens."""

    logps: BT
    mask: Mask


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """Numbers of a loss without a reference.

    Attributes:
        beta: Factor of the gap, or of the loss of the odds ratio; 1/(2 beta) is the target of IPO.
        label_smoothing: Chance that a pair is labelled the wrong way round.
        margin: Gap of rewards, beta times the scores, that SimPO and TPO-L ask for.
        alpha: Shape of a score; 0 leaves it a log-probability.
    """

    beta: float
    label_smoothing: float = 0.0
    margin: float = 0.0
    alpha: float = 0.0


Gap = Callable[[B, B], B]
Link = Callable[[B, Coefficients], B]


def difference(chosen: B, rejected: B) -> B:
    """Return the difference of two scores."""
    return chosen - rejected


def log_odds(logp: B) -> B:
    """Return log(P / (1 - P)) of P = exp(logp); arXiv 2403.07691 eq. 4.

    1 - P is computed without cancellation. Where P is 1 in the precision of `logp`, the odds are
    the largest that it represents, without gradient.
    """
    below = logp.clamp(max=-torch.finfo(logp.dtype).tiny)
    return below - (-torch.expm1(below)).log()


def log_odds_ratio(chosen: B, rejected: B) -> B:
    """Return the difference of the log-odds of two log-probabilities."""
    return log_odds(chosen) - log_odds(rejected)


def logistic(gap: B, c: Coefficients) -> B:
    """Return the logistic loss of beta times the gap, with smoothed labels; arXiv 2401.08417."""
    return smoothed(c.beta * gap, c.label_smoothing)


def logistic_of_margin(gap: B, c: Coefficients) -> B:
    """Return the logistic loss of beta times the gap minus a margin; arXiv 2405.14734 eq. 6."""
    return smoothed(c.beta * gap - c.margin, c.label_smoothing)


def hinge(gap: B, c: Coefficients) -> B:
    """Return max(0, 1 - beta gap); arXiv 2305.10425 with a margin of 1 / beta, times beta."""
    return torch.relu(1 - c.beta * gap)


def is_active(gap: B, c: Coefficients) -> B:
    """Return 1 for pairs that the hinge has a gradient of, beta gap < 1, and 0 for others."""
    return (c.beta * gap < 1).to(gap.dtype)


def squared(gap: B, c: Coefficients) -> B:
    """Return (gap - 1 / (2 beta))^2; arXiv 2310.12036 eq. 17 without a reference."""
    return (gap - 1 / (2 * c.beta)).square()


def odds_loss(gap: B, c: Coefficients) -> B:
    """Return -beta log sigma(gap); arXiv 2403.07691 eq. 7."""
    return -c.beta * log_sigmoid(gap)


@dataclass(frozen=True, kw_only=True)
class ReferenceFree:
    """A row of a table of losses: the loss of each pair from the scores of its answers.

    Attributes:
        link: Maps gaps (B,) to losses (B,).
        doc: One line of documentation.
        averages: Whether a score is the mean log-probability of a token, else their sum.
        gap: Maps the scores of chosen and rejected answers to gaps (B,).
        parameters: Names of the settings that have an effect with this loss.
        metrics: Maps names of metrics to functions from gaps (B,) to a value of each pair.
    """

    link: Link
    doc: str
    averages: bool = False
    gap: Gap = difference
    parameters: tuple[str, ...] = ()
    metrics: Mapping[str, Link] = field(default_factory=dict[str, Link])


SMOOTHS = ("label_smoothing",)
SIGMOID = ReferenceFree(
    link=logistic, doc="logistic, of whole answers, arXiv 2401.08417", parameters=SMOOTHS
)
HINGE = ReferenceFree(
    link=hinge,
    doc="a hinge of whole answers, arXiv 2305.10425",
    metrics={"active_pairs": is_active},
)
SQUARED = ReferenceFree(link=squared, doc="IPO of means of a token", averages=True)
CPO_LOSSES: Mapping[str, ReferenceFree] = {
    "sigmoid": SIGMOID,
    "hinge": HINGE,
    "ipo": replace(SQUARED, parameters=("alpha",)),
    "simpo": ReferenceFree(
        link=logistic_of_margin,
        doc="SimPO, arXiv 2405.14734, which is AlphaPO, arXiv 2501.03884, with `alpha`",
        averages=True,
        parameters=(*SMOOTHS, "simpo_gamma", "alpha"),
    ),
}
TPO_LOSSES: Mapping[str, ReferenceFree] = {
    "sigmoid": SIGMOID,
    "hinge": HINGE,
    "ipo": SQUARED,
    "tpo-l": ReferenceFree(
        link=logistic_of_margin,
        doc="TPO-L, of means of a token, arXiv 2405.16681",
        averages=True,
        parameters=(*SMOOTHS, "tpo_l_gamma"),
    ),
}
ORPO_LOSS = ReferenceFree(
    link=odds_loss, doc="ORPO, arXiv 2403.07691", averages=True, gap=log_odds_ratio
)


@dataclass(frozen=True, kw_only=True)
class ReferenceFreeLosses:
    """The loss of each pair (B,), and what metrics are made of.

    Attributes:
        losses: Losses without the likelihood term.
        gap: Gap of the scores, for ORPO the log odds ratio.
        logps: Log-probabilities of chosen and rejected answers, sums or means as the loss reads.
        rewards: Scores of chosen and rejected answers times beta.
    """

    losses: B
    gap: B
    logps: tuple[B, B]
    rewards: tuple[B, B]


def reference_free_losses(
    chosen: AnswerLogps, rejected: AnswerLogps, row: ReferenceFree, c: Coefficients
) -> ReferenceFreeLosses:
    """Return the losses of pairs under a row of `CPO_LOSSES` or `TPO_LOSSES`, or `ORPO_LOSS`.

    A log-probability m is scored by (1 - exp(-alpha m)) / alpha, by m itself if alpha is 0;
    arXiv 2501.03884.
    """
    logps = answer_logp(chosen, row), answer_logp(rejected, row)
    scores = [alpha_divergence(logp, 1 - c.alpha) for logp in logps]
    gap = row.gap(*scores)
    return ReferenceFreeLosses(
        losses=row.link(gap, c),
        gap=gap,
        logps=logps,
        rewards=(c.beta * scores[0], c.beta * scores[1]),
    )


def answer_logp(answers: AnswerLogps, row: ReferenceFree) -> B:
    """Return the log-probability of each answer (B,), the mean over its tokens or their sum."""
    if row.averages:
        return masked_mean(answers.logps, answers.mask)
    return (answers.logps * answers.mask).sum(-1)


def negative_log_likelihood(answers: AnswerLogps) -> B:
    """Return the sum of -log pi over the tokens of each answer (B,)."""
    return -(answers.logps * answers.mask).sum(-1)
