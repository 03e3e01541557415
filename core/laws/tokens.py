"""Laws of the loss of a single token, and its gradient, at given importance ratios."""

from collections.abc import Sequence

import torch

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss

OLD = -2.0  # log pi_old of the token
WIDE = tuple(10 ** (k / 20) for k in range(-40, 41))  # from 0.01 to 100
NARROW = tuple(k / 20 for k in range(2, 121))  # from 0.1 to 6


def losses(advantage: float, ratios: Sequence[float], **settings: object) -> list[float]:
    """Return the loss of one token at each ratio; `settings` are fields of `PolicyConfig`."""
    return [_loss_and_gradient(ratio, advantage, **settings)[0] for ratio in ratios]


def gradients(advantage: float, ratios: Sequence[float], **settings: object) -> list[float]:
    """Return d loss / d log pi of one token at each ratio."""
    return [_loss_and_gradient(ratio, advantage, **settings)[1] for ratio in ratios]


def largest_loss(advantage: float, **settings: object) -> float:
    """Return the largest loss of a token over ratios from 0.01 to 100."""
    return max(losses(advantage, WIDE, **settings))


def gradient_sizes(advantage: float, *ratios: float, **settings: object) -> list[float]:
    """Return |d loss / d log pi| of one token at each of these ratios."""
    return [abs(size) for size in gradients(advantage, ratios, **settings)]


def idle_tokens(loss_type: str, **settings: object) -> float:
    """Count the tokens without a gradient: ratios from 0.1 to 6, each at A = 1 and A = -1."""
    sizes = [
        size
        for advantage in (1.0, -1.0)
        for size in gradients(advantage, NARROW, loss_type=loss_type, **settings)
    ]
    return float(sum(size == 0 for size in sizes))


def change_by_cap(delta: float) -> list[float]:
    """Return |loss with the ratio capped at `delta` - loss without the cap| at many ratios.

    First come the ratios of `WIDE` below `delta` with A = -1, then all of `WIDE` with A = 1.
    """
    below_cap = [ratio for ratio in WIDE if ratio < delta]
    return [
        abs(with_cap - without)
        for advantage, ratios in ((-1.0, below_cap), (1.0, WIDE))
        for with_cap, without in zip(
            losses(advantage, ratios, delta=delta), losses(advantage, ratios), strict=True
        )
    ]


def _loss_and_gradient(ratio: float, advantage: float, **settings: object) -> tuple[float, float]:
    old = torch.full((1, 1), OLD, dtype=torch.float64)
    logps = (old + torch.tensor(ratio, dtype=torch.float64).log()).requires_grad_()
    token = Rollout(
        logps=logps,
        old_logps=old,
        advantages=torch.full((1, 1), advantage, dtype=torch.float64),
        mask=torch.ones(1, 1),
    )
    config = PolicyConfig(**settings)  # pyright: ignore[reportArgumentType] - any of its fields
    loss = policy_loss(token, config, Scale(rollout_tokens=torch.tensor(1.0))).loss
    return loss.item(), torch.autograd.grad(loss, logps)[0].item()
