"""Gradients of the losses of several methods by the log-probabilities of tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from core.losses.aggregate import Scale
from core.losses.batch import PolicyConfig, Rollout
from core.losses.policy import policy_loss
from core.shapes import BT, Scalar

# The loss of each method, as its paper sets it.
METHODS: Mapping[str, PolicyConfig] = {
    "grpo": PolicyConfig(loss_type="grpo", epsilon=0.2),
    "dapo": PolicyConfig(loss_type="dapo", epsilon=0.2, epsilon_high=0.28),
    "gspo": PolicyConfig(
        loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4
    ),
    "gspo-token": PolicyConfig(
        loss_type="grpo",
        importance_sampling_level="sequence_token",
        epsilon=3e-4,
        epsilon_high=4e-4,
    ),
    "luspo": PolicyConfig(
        loss_type="luspo", importance_sampling_level="sequence", epsilon=2e-3, epsilon_high=2.5e-3
    ),
    "gmpo": PolicyConfig(loss_type="gmpo", epsilon=0.4),
    "cispo": PolicyConfig(loss_type="cispo", epsilon_high=5.0),
    "sapo": PolicyConfig(loss_type="sapo"),
    "vespo": PolicyConfig(loss_type="vespo"),
}
LENGTHS = (2, 3, 4, 5, 7, 8)  # of the answers of a batch, in tokens
BATCHES = 8
NO_CLIP = 1e6  # a width that no ratio leaves


def unclipped(method: str) -> PolicyConfig:
    """The settings of a method without its clip."""
    return replace(METHODS[method], epsilon=NO_CLIP, epsilon_high=NO_CLIP)


def batch(spread: float, seed: int, lengths: Sequence[int] = LENGTHS) -> Rollout:
    """Answers of these lengths with advantages of both signs.

    Their log ratios are normal with the deviation `spread`.
    """
    draw = torch.Generator().manual_seed(seed)
    size = (len(lengths), max(lengths))
    old = -3 * torch.rand(size, generator=draw, dtype=torch.float64)
    moved = spread * torch.randn(size, generator=draw, dtype=torch.float64)
    size_of = torch.rand(size[0], 1, generator=draw, dtype=torch.float64) + 0.1
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(len(lengths))[: len(lengths)]
    places = torch.arange(max(lengths))
    return Rollout(
        logps=(old + moved).requires_grad_(),
        old_logps=old,
        advantages=size_of * signs.unsqueeze(1),
        mask=(places < torch.tensor(lengths).unsqueeze(1)).double(),
    )


def batches(spread: float) -> Iterator[Rollout]:
    """`BATCHES` of them."""
    return (batch(spread, seed) for seed in range(BATCHES))


def gradient(r: Rollout, c: PolicyConfig) -> tuple[Scalar, BT]:
    """The loss of a batch that is a whole rollout, and d loss / d log pi of each token."""
    loss = policy_loss(r, c, Scale(rollout_tokens=r.mask.sum(), max_length=r.mask.size(1))).loss
    return loss.detach(), torch.autograd.grad(loss, r.logps)[0]


def gradient_gap(one: str, other: str, spread: float = 0.0) -> list[float]:
    """The greatest difference of two methods' gradients in each batch; at ratio 1 by default."""
    return [gap for _, gap in _gaps(one, other, spread)]


def loss_gap(one: str, other: str, spread: float = 0.0) -> list[float]:
    """The greater of that and the difference of their losses."""
    return [max(pair) for pair in _gaps(one, other, spread)]


def _gaps(one: str, other: str, spread: float) -> list[tuple[float, float]]:
    """The differences of losses and of gradients."""
    pairs = [(gradient(r, METHODS[one]), gradient(r, METHODS[other])) for r in batches(spread)]
    return [(float((a - b).abs()), float((da - db).abs().max())) for (a, da), (b, db) in pairs]


def weights(
    c: PolicyConfig, ratios: Sequence[float], advantage: float, *, by_ratio: bool = False
) -> list[float]:
    """|d loss / d log pi| of answers of one token with these ratios, each as if alone.

    With `by_ratio` it is |d loss / d ratio|, what the gate of a soft clip is multiplied by.
    """
    moved = torch.tensor(ratios, dtype=torch.float64).log().unsqueeze(1)
    r = Rollout(
        logps=moved.requires_grad_(),
        old_logps=torch.zeros_like(moved),
        advantages=torch.full_like(moved, advantage).detach(),
        mask=torch.ones_like(moved).detach(),
    )
    each = gradient(r, c)[1].abs().squeeze(1) * len(ratios)
    return (each / torch.tensor(ratios, dtype=torch.float64) if by_ratio else each).tolist()
