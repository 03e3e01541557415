"""What PAPO adds to a policy loss: how much the answers to a picture depend on it; 2507.06448.

Each answer is scored twice, with the picture and with a masked copy of it.
"""

from core.losses.kl import k3
from core.losses.masked import masked_mean
from core.shapes import BT, B, Mask


def perception_kl(logps: BT, masked_logps: BT) -> BT:
    """r - log r - 1 with r = pi(o_t | picture) / pi(o_t | masked picture), per token.

    It is raised. As in the paper's code its gradient goes through `logps` alone.
    """
    return k3(masked_logps.detach(), logps)


def sampled_entropy(logps: BT, mask: Mask) -> B:
    """-mean_t log pi(o_t), the paper's measure of entropy of one answer; it is lowered."""
    return -masked_mean(logps, mask)


def perception_objective(
    logps: BT, masked_logps: BT, mask: Mask, *, gamma: float, eta: float, eta_masked: float
) -> B:
    """gamma KL - eta H - eta_masked H_masked of each answer, which is added to what is maximised.

    H is the entropy with the picture and H_masked that with the masked one, which alone takes the
    gradient to `masked_logps`.
    """
    kl = masked_mean(perception_kl(logps, masked_logps), mask)
    entropies = eta * sampled_entropy(logps, mask) + eta_masked * sampled_entropy(
        masked_logps, mask
    )
    return gamma * kl - entropies
