"""Surrogate objectives: what is minimised at each token, before any mean."""

from math import log

import torch

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.shapes import BT1

LEAST_LOG, GREATEST_LOG = log(1e-8), 20.0  # of ratios in VESPO


def capped(ratio: BT1, c: PolicyConfig) -> BT1:
    """min(r, delta) if delta is set; the upper bound of two-sided clipping, arXiv 2505.07291."""
    return ratio if c.delta is None else ratio.clamp(max=c.delta)


def clipped(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """-min(r A, clip(r, 1 - eps, 1 + eps_high) A); r first capped at delta if it is set.

    arXiv 2402.03300 eq. 3; the two clip widths are arXiv 2503.14476 eq. 10.
    """
    bounded = ratio.clamp(1 - c.epsilon, 1 + c.upper_epsilon)
    return -torch.min(capped(ratio, c) * r.advantages, bounded * r.advantages)


def reweighted(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """-sg(min(r, cap)) A log pi: no token loses its gradient; arXiv 2506.13585 (CISPO).

    The cap is eps_high itself, as in TRL, where the paper has 1 + eps_high.
    """
    return -ratio.detach().clamp(max=c.upper_epsilon) * r.advantages * r.logps


def gated(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """-4 / tau sigmoid(tau (r - 1)) A, with a tau for each sign of A; arXiv 2511.20347 (SAPO)."""
    tau = torch.where(r.advantages > 0, c.sapo_temperature_pos, c.sapo_temperature_neg)
    return -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * r.advantages


def gamma_weighted(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """-sg(phi) A log pi with phi of `gamma_weight`; arXiv 2602.10693 (VESPO)."""
    return -gamma_weight(r, ratio, c) * r.advantages * r.logps


def mean_gamma_weighted(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """The same with phi of `mean_gamma_weight`."""
    return -mean_gamma_weight(r, ratio, c) * r.advantages * r.logps


@torch.no_grad()
def gamma_weight(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - a table row
    """phi(w) of w = prod_t pi / pi_old.

    Or over the engine's policy, where `sampling_ratio` says how far it is.
    """
    return gamma_gate(r, log_product(r), c)


@torch.no_grad()
def mean_gamma_weight(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - as above
    """phi of the geometric mean of the same ratios, the ablation of arXiv 2602.10693."""
    return gamma_gate(r, log_product(r) / r.mask.sum(-1, keepdim=True).clamp(min=1), c)


def log_product(r: Rollout) -> BT1:
    """log w, the ratios of its tokens being bounded."""
    log_w = (r.log_ratio.clamp(-20.0, GREATEST_LOG) * r.mask).sum(-1, keepdim=True)
    if r.sampling_ratio is not None:
        log_sampling = r.sampling_ratio.log().clamp(LEAST_LOG, GREATEST_LOG)
        log_w = log_w + (log_sampling * r.mask).sum(-1, keepdim=True)
    return log_w


def gamma_gate(r: Rollout, log_ratio: BT1, c: PolicyConfig) -> BT1:
    """phi(w) = w^k exp(lambda (1 - w)), with k and lambda for each sign of A, and phi(1) = 1."""
    log_w = log_ratio.clamp(LEAST_LOG, GREATEST_LOG)
    gains = r.advantages >= 0
    k = torch.where(gains, c.vespo_k_pos, c.vespo_k_neg)
    rate = torch.where(gains, c.vespo_lambda_pos, c.vespo_lambda_neg).clamp(min=1e-4)
    log_phi = rate + k * log_w - rate * log_w.exp()
    return log_phi.exp().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def geometric(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - as above
    """-A exp(mean_t log r'), log r' clipped to [-eps, eps_high] on the gain's side only; GMPO.

    arXiv 2507.20673: the geometric mean of the clipped ratios of the tokens that are kept.
    """
    bounded = r.log_ratio.clamp(-c.epsilon, c.upper_epsilon)
    least, most = torch.minimum(r.log_ratio, bounded), torch.maximum(r.log_ratio, bounded)
    log_ratio = torch.where(r.advantages > 0, least, most)
    return -masked_mean(log_ratio, r.kept_mask).unsqueeze(-1).exp() * r.advantages
