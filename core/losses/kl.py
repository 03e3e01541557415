"""Estimators of KL(pi || pi_ref) from tokens sampled by pi, with u = pi_ref / pi."""

from collections.abc import Callable
from dataclasses import dataclass

from core.shapes import BT


def k1(logps: BT, ref_logps: BT) -> BT:
    """Return -log u of each token: unbiased, and of either sign."""
    return logps - ref_logps


def k2(logps: BT, ref_logps: BT) -> BT:
    """Return (log u)^2 / 2 of each token: biased, with low variance."""
    return 0.5 * (ref_logps - logps).square()


def k3(logps: BT, ref_logps: BT) -> BT:
    """Return u - log u - 1 of each token: unbiased and never negative; arXiv 2402.03300 eq. 4."""
    log_u = ref_logps - logps
    return log_u.exp() - log_u - 1


def next_coefficient(coefficient: float, kl: float, target: float) -> float:
    """Return half the KL weight if kl < target / 1.5, twice if kl > 1.5 target, else the weight.

    arXiv 1707.06347 s4.
    """
    if kl < target / 1.5:
        return coefficient / 2
    return coefficient * 2 if kl > target * 1.5 else coefficient


@dataclass(frozen=True)
class Estimator:
    """A row of `ESTIMATORS`: a function of the log-probabilities of policy and reference."""

    estimate: Callable[[BT, BT], BT]
    doc: str

    def __call__(self, logps: BT, ref_logps: BT) -> BT:
        """Return the estimate of each token (B, T)."""
        return self.estimate(logps, ref_logps)


ESTIMATORS = {
    "k1": Estimator(k1, "-log u with u = pi_ref / pi, whose expected gradient is 0"),
    "k2": Estimator(k2, "(log u)^2 / 2, whose gradient is that of the KL if pi sampled the tokens"),
    "k3": Estimator(k3, "u - log u - 1, arXiv 2402.03300 eq. 4"),
}
