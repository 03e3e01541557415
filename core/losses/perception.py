"""PAPO's additions to a policy loss: how much answers depend on the picture; arXiv 2507.06448.

Each answer is scored twice, with the picture and with a masked copy of it.
"""

from core.losses.kl import k3
from core.losses.masked import masked_mean
from core.shapes import BT, B, Mask


def perception_kl(logps: BT, masked_logps: BT) -> BT:
    """Return r - log r - 1 with r = pi(o_t | picture) / pi(o_t | masked picture), for each token.

    PAPO maximises it. As in the paper's code, only `logps` has a gradient.
    """
    return k3(masked_logps.detach(), logps)


def sampled_entropy(logps: BT, mask: Mask) -> B:
    """Return -mean_t log pi(o_t) of each answer (B,), the entropy that PAPO minimises."""
    return -masked_mean(logps, mask)


def perception_objective(
    logps: BT, masked_logps: BT, mask: Mask, *, gamma: float, eta: float, eta_masked: float
) -> B:
    """Return gamma KL - eta H - eta_masked H_masked of each answer (B,), which PAPO maximises.

    H is the sampled entropy with the picture and H_masked that with the masked picture. Only
    H_masked has a gradient for `masked_logps`.
    """
    kl = masked_mean(perception_kl(logps, masked_logps), mask)
    entropies = eta * sampled_entropy(logps, mask) + eta_masked * sampled_entropy(
        masked_logps, mask
    )
    return gamma * kl - entropies
