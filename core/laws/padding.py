"""A law of padding: numbers behind the end of a completion change no loss and no gradient."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from core.laws.gradients import batch
from core.losses.aggregate import AGGREGATES, Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import LOSS_TYPES, policy_loss

GROUP_TOKENS = torch.tensor([9.0, 9.0, 9.0, 20.0, 20.0, 20.0], dtype=torch.float64)


def settings() -> Iterator[PolicyConfig]:
    """Yield every loss at every level of its ratio with every aggregate, and a KL."""
    for loss_type, row in LOSS_TYPES.items():
        for level in row.levels:
            for aggregate in AGGREGATES:
                yield PolicyConfig(
                    loss_type=loss_type,
                    importance_sampling_level=level,
                    loss_aggregate=aggregate,
                    beta=0.1,
                    off_policy_mask_threshold=0.01,
                )


def padding_changes() -> list[float]:
    """Return the largest change of loss and gradient by other padding, for each of `settings`."""
    return [_change(config) for config in settings()]


def _change(config: PolicyConfig) -> float:
    loss, gradient = _loss(_padded_batch(0), config)
    other_loss, other_gradient = _loss(_padded_batch(1), config)
    return float((gradient - other_gradient).abs().max() + (loss - other_loss).abs())


def _padded_batch(seed: int) -> Rollout:
    """Return one batch of completions with random numbers, drawn with the seed, as padding."""
    r = batch(0.3, 0)
    draw = torch.Generator().manual_seed(seed)

    def fill(x: torch.Tensor) -> torch.Tensor:
        noise = -3 * torch.rand(x.shape, generator=draw, dtype=torch.float64)
        return torch.where(r.mask.bool(), x.detach(), noise)

    return replace(
        r,
        logps=fill(r.logps).requires_grad_(),
        old_logps=fill(r.old_logps),
        ref_logps=fill(r.old_logps - 0.2),
        sampling_logps=fill(r.old_logps + 0.1),
        sampling_ratio=fill(r.old_logps).exp(),
    )


def _loss(r: Rollout, config: PolicyConfig) -> tuple[torch.Tensor, torch.Tensor]:
    scale = Scale(rollout_tokens=r.mask.sum(), max_length=8, group_tokens=GROUP_TOKENS)
    loss = policy_loss(r, config, scale).loss
    (gradient,) = torch.autograd.grad(loss, r.logps)
    return loss.detach(), gradient
