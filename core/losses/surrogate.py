"""Surrogate objectives: the loss of each token, to be minimised, before any mean."""

from math import log

import torch

from core.losses.batch import PolicyConfig, Rollout
from core.losses.masked import masked_mean
from core.shapes import BT1

LEAST_LOG, GREATEST_LOG = log(1e-8), 20.0  # limits of log-ratios in VESPO


def cap_ratio(ratio: BT1, c: PolicyConfig) -> BT1:
    """Return min(r, delta), or r if delta is None: two-sided clipping, arXiv 2505.07291."""
    return ratio if c.delta is None else ratio.clamp(max=c.delta)


def clipped_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return -min(r A, clip(r, 1 - eps, 1 + eps_high) A), with r capped at delta first.

    arXiv 2402.03300 eq. 3; the two clip widths are arXiv 2503.14476 eq. 10.
    """
    bounded = ratio.clamp(1 - c.epsilon, 1 + c.upper_epsilon)
    return -torch.min(cap_ratio(ratio, c) * r.advantages, bounded * r.advantages)


def cispo_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return -sg(min(r, cap)) A log pi, in which every token keeps its gradient.

    arXiv 2506.13585 (CISPO). The cap is eps_high itself, as in TRL; the paper has 1 + eps_high.
    """
    return -ratio.detach().clamp(max=c.upper_epsilon) * r.advantages * r.logps


def sapo_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return -4 / tau sigmoid(tau (r - 1)) A, with a tau for each sign of A.

    arXiv 2511.20347 (SAPO).
    """
    tau = torch.where(r.advantages > 0, c.sapo_temperature_pos, c.sapo_temperature_neg)
    return -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * r.advantages


def vespo_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return -sg(phi) A log pi with phi of `gamma_weight`; arXiv 2602.10693 (VESPO)."""
    return -gamma_weight(r, ratio, c) * r.advantages * r.logps


def mean_vespo_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:
    """Return -sg(phi) A log pi with phi of `mean_gamma_weight`."""
    return -mean_gamma_weight(r, ratio, c) * r.advantages * r.logps


@torch.no_grad()
def gamma_weight(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - a table row
    """Return phi(w) of each completion (B, 1), with w = prod_t pi / pi_old.

    If the rollout has a `sampling_ratio`, w is the ratio to the policy of the engine.
    """
    return gamma_gate(r, log_product(r), c)


@torch.no_grad()
def mean_gamma_weight(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - as above
    """Return phi(w^(1 / n)) of each completion (B, 1), with w of `gamma_weight`.

    n is the number of trained tokens, so w^(1 / n) is the geometric mean of the token ratios. It is
    an ablation of arXiv 2602.10693.
    """
    return gamma_gate(r, log_product(r) / r.mask.sum(-1, keepdim=True).clamp(min=1), c)


def log_product(r: Rollout) -> BT1:
    """Return log w of each completion (B, 1), with bounded token ratios; w as in `gamma_weight`."""
    log_w = (r.log_ratio.clamp(-20.0, GREATEST_LOG) * r.mask).sum(-1, keepdim=True)
    if r.sampling_ratio is not None:
        log_sampling = r.sampling_ratio.log().clamp(LEAST_LOG, GREATEST_LOG)
        log_w = log_w + (log_sampling * r.mask).sum(-1, keepdim=True)
    return log_w


def gamma_gate(r: Rollout, log_ratio: BT1, c: PolicyConfig) -> BT1:
    """Return phi(w) = w^k exp(lambda (1 - w)), with k and lambda for each sign of A; phi(1) = 1."""
    log_w = log_ratio.clamp(LEAST_LOG, GREATEST_LOG)
    gains = r.advantages >= 0
    k = torch.where(gains, c.vespo_k_pos, c.vespo_k_neg)
    rate = torch.where(gains, c.vespo_lambda_pos, c.vespo_lambda_neg).clamp(min=1e-4)
    log_phi = rate + k * log_w - rate * log_w.exp()
    return log_phi.exp().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def gmpo_surrogate(r: Rollout, ratio: BT1, c: PolicyConfig) -> BT1:  # noqa: ARG001 - as above
    """Return -A exp(mean_t log r'), the geometric mean of clipped ratios; arXiv 2507.20673 (GMPO).

    log r' is clipped to [-eps, eps_high] only on the side where clipping lowers the gain. The mean
    is over the tokens that are selected by their entropy.
    """
    bounded = r.log_ratio.clamp(-c.epsilon, c.upper_epsilon)
    lower, upper = torch.minimum(r.log_ratio, bounded), torch.maximum(r.log_ratio, bounded)
    log_ratio = torch.where(r.advantages > 0, lower, upper)
    return -masked_mean(log_ratio, r.kept_mask).unsqueeze(-1).exp() * r.advantages
