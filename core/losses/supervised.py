"""Losses of supervised fine-tuning as functions of the log-probabilities of labelled tokens."""

from collections.abc import Callable
from dataclasses import dataclass

from core.shapes import N


def nll(logps: N) -> N:
    """Return -log pi(y_t | y_<t), the negative log-likelihood of each token."""
    return -logps


def dft(logps: N) -> N:
    """Return -sg(pi(y_t)) log pi(y_t): dynamic fine-tuning, arXiv 2508.05629 eq. 9."""
    return -logps.detach().exp() * logps


@dataclass(frozen=True)
class Supervised:
    """A row of `SUPERVISED`: the loss of each labelled token."""

    loss: Callable[[N], N]
    doc: str


SUPERVISED = {
    "nll": Supervised(nll, "the negative log-likelihood"),
    "dft": Supervised(dft, "the negative log-likelihood times the probability, arXiv 2508.05629"),
}
