"""Laws of entropy in a policy loss: selection of tokens by it, and its adaptive coefficient."""

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
    """Return the gradient normalised by all tokens over that by kept ones, for each of `SHARES`."""
    return [
        (token_gradient(share, "all").sum() / token_gradient(share, "kept").sum()).item()
        for share in SHARES
    ]


def kept_share() -> list[float]:
    """Return the share of the tokens that is kept, for each of `SHARES`."""
    tokens = sum(map(sum, MASK))
    return [kept_tokens(share).sum().item() / tokens for share in SHARES]


def kept_tokens(share: float) -> Tensor:
    """Return a mask (B, T) of the `share` of tokens with the highest entropy."""
    entropy, mask = torch.tensor(ENTROPY, dtype=torch.float64), torch.tensor(MASK)
    return ENDS["most"].select(entropy, entropy[mask.bool()], share) & mask.bool()


def token_gradient(share: float, normalizer: str) -> Tensor:
    """Return d loss / d log pi of each token at ratio 1 and advantage 1, shape (B, T)."""
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


def controller_gap(target: float, delta: float, coef_min: float, coef_max: float) -> list[float]:
    """Return how far the entropy coefficients along `COURSE` are from the rule of arXiv 2505.22312.

    There are two differences for each entropy: that of the coefficient that acts, which is c below
    the target and 0 above it, and that of the next c, which is c + delta below the target and
    c - delta above it, within the limits. No entropy of `COURSE` equals the target.
    """
    config = EntropyConfig(
        use_adaptive_entropy=True,
        entropy_target=target,
        entropy_coef_delta=delta,
        entropy_coef_min=coef_min,
        entropy_coef_max=coef_max,
    )
    gaps: list[float] = []
    coefficient = config.entropy_coef
    for entropy in COURSE:
        below = entropy < target
        acts = coefficient if below else 0.0
        gaps.append(abs(acting_coefficient(coefficient, entropy, config) - acts))
        step = delta if below else -delta
        ruled = min(max(coefficient + step, coef_min), coef_max)
        coefficient = next_coefficient(coefficient, entropy, config)
        gaps.append(abs(coefficient - ruled))
    return gaps
