"""Losses of supervised fine-tuning as functions of the log-probabilities of labelled tokens."""

from collections.abc import Callable
from dataclasses import dataclass

from core.shapes import NV, N


def nll(logps: N) -> N:
    """Return -log pi(y_t | y_<t), the negative log-likelihood of each token."""
    return -logps


def dft(logps: N) -> N:
    """Return -sg(pi(y_t)) log pi(y_t): dynamic fine-tuning, arXiv 2508.05629 eq. 9."""
    return -logps.detach().exp() * logps


def smooth_labels(losses: N, logits: NV, share: float) -> N:
    """Return (1 - s) l_t - s mean_v log pi(v | y_<t): a share s of a label is spread over all v."""
    return (1 - share) * losses + share * (logits.logsumexp(-1) - logits.mean(-1))


@dataclass(frozen=True)
class Supervised:
    """A row of `SUPERVISED`: the loss of each labelled token.

    With `smooths` its labels may be smoothed.
    """

    loss: Callable[[N], N]
    doc: str
    smooths: bool = False


SUPERVISED = {
    "nll": Supervised(nll, "the negative log-likelihood", smooths=True),
    "dft": Supervised(dft, "the negative log-likelihood times the probability, arXiv 2508.05629"),
}
