"""Entropy in a policy loss: the divisor beside tokens that it chose, and its adaptive weight."""

import torch
from torch import Tensor

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.entropy import (
    ENDS,
    NORMALIZERS,
    EntropyConfig,
    acting_coefficient,
    next_coefficient,
)
from core.losses.policy import policy_loss

# Of two completions, the second one a token shorter, in nats.
ENTROPY = ((0.1, 0.9, 0.5, 0.02, 1.4), (1.2, 0.3, 0.7, 0.2, 0.0))
MASK = ((1, 1, 1, 1, 1), (1, 1, 1, 1, 0))
SHARES = (0.12, 0.2, 0.34, 0.5, 0.8)
# Nats a token, step by step: above the target, below it for long, about it, above it.
COURSE = (0.5, 0.3, *(0.1,) * 60, *(0.19, 0.21) * 4, *(0.4,) * 70)


def divisor_ratio() -> list[float]:
    """For each of `SHARES`, the gradient divided by all tokens over that by the kept ones."""
    return [
        (token_gradient(share, "all").sum() / token_gradient(share, "kept").sum()).item()
        for share in SHARES
    ]


def kept_share() -> list[float]:
    """For each of `SHARES`, how large a share of the tokens is kept."""
    tokens = sum(map(sum, MASK))
    return [kept_tokens(share).sum().item() / tokens for share in SHARES]


def kept_tokens(share: float) -> Tensor:
    """1 on the most uncertain tokens; (B, T)."""
    entropy, mask = torch.tensor(ENTROPY, dtype=torch.float64), torch.tensor(MASK)
    return ENDS["most"].select(entropy, entropy[mask.bool()], share) & mask.bool()


def token_gradient(share: float, normalizer: str) -> Tensor:
    """d loss / d log pi of each token at ratio 1, all advantages being 1; (B, T)."""
    mask = torch.tensor(MASK)
    logps = torch.zeros(mask.shape, dtype=torch.float64, requires_grad=True)
    batch = Rollout(
        logps=logps,
        old_logps=logps.detach(),
        advantages=torch.ones(len(mask), 1, dtype=torch.float64),
        mask=mask,
        entropy_mask=kept_tokens(share),
    )
    counted = NORMALIZERS[normalizer].counts(batch).sum()
    config = PolicyConfig(loss_type="dapo", top_entropy_normalizer=normalizer)
    loss = policy_loss(batch, config, Scale(rollout_tokens=counted)).loss
    return torch.autograd.grad(loss, logps)[0]


def controller_gap(target: float, delta: float, least: float, most: float) -> list[float]:
    """|weight - the rule's| along `COURSE`: of the next step, and of the bonus as it acts.

    The rule (arXiv 2505.22312): c + delta below the target, else c - delta, within the limits; the
    bonus acts with c below the target and not at all above it. Nothing in `COURSE` is the target.
    """
    c = EntropyConfig(
        use_adaptive_entropy=True,
        entropy_target=target,
        entropy_coef_delta=delta,
        entropy_coef_min=least,
        entropy_coef_max=most,
    )
    gaps: list[float] = []
    coefficient = c.entropy_coef
    for entropy in COURSE:
        below = entropy < target
        acts = coefficient if below else 0.0
        gaps.append(abs(acting_coefficient(coefficient, entropy, c) - acts))
        step = delta if below else -delta
        ruled = min(max(coefficient + step, least), most)
        coefficient = next_coefficient(coefficient, entropy, c)
        gaps.append(abs(coefficient - ruled))
    return gaps
