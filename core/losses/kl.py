"""Estimators of KL(pi || pi_ref) from tokens that pi sampled; u = pi_ref / pi."""

from core.shapes import BT


def k1(logps: BT, ref_logps: BT) -> BT:
    """-log u: unbiased, of either sign."""
    return logps - ref_logps


def k2(logps: BT, ref_logps: BT) -> BT:
    """(log u)^2 / 2: biased, of low variance."""
    return 0.5 * (ref_logps - logps).square()


def k3(logps: BT, ref_logps: BT) -> BT:
    """u - log u - 1: unbiased and never negative; arXiv 2402.03300 eq. 4."""
    log_u = ref_logps - logps
    return log_u.exp() - log_u - 1


ESTIMATORS = {"k1": k1, "k2": k2, "k3": k3}
