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


def without_clip(method: str) -> PolicyConfig:
    """Return the settings of a method with a clip so wide that no ratio leaves it."""
    return replace(METHODS[method], epsilon=NO_CLIP, epsilon_high=NO_CLIP)


def batch(spread: float, seed: int, lengths: Sequence[int] = LENGTHS) -> Rollout:
    """Return random answers of these lengths with advantages of both signs.

    Args:
        spread: standard deviation of the normal log ratios of tokens.
        seed: of the random numbers.
        lengths: of the answers, in tokens.
    """
    draw = torch.Generator().manual_seed(seed)
    size = (len(lengths), max(lengths))
    old = -3 * torch.rand(size, generator=draw, dtype=torch.float64)
    log_ratios = spread * torch.randn(size, generator=draw, dtype=torch.float64)
    sizes = torch.rand(size[0], 1, generator=draw, dtype=torch.float64) + 0.1
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(len(lengths))[: len(lengths)]
    places = torch.arange(max(lengths))
    return Rollout(
        logps=(old + log_ratios).requires_grad_(),
        old_logps=old,
        advantages=sizes * signs.unsqueeze(1),
        mask=(places < torch.tensor(lengths).unsqueeze(1)).double(),
    )


def batches(spread: float) -> Iterator[Rollout]:
    """Yield `BATCHES` batches with seeds from 0 on, whose log ratios deviate by `spread`."""
    return (batch(spread, seed) for seed in range(BATCHES))


def gradient(r: Rollout, c: PolicyConfig) -> tuple[Scalar, BT]:
    """Return the loss of a batch that is a whole rollout, and d loss / d log pi, shape (B, T)."""
    loss = policy_loss(r, c, Scale(rollout_tokens=r.mask.sum(), max_length=r.mask.size(1))).loss
    return loss.detach(), torch.autograd.grad(loss, r.logps)[0]


def gradient_gap(method: str, reference: str, spread: float = 0.0) -> list[float]:
    """Return the largest difference of two methods' gradients by batch; `spread` 0 is ratio 1."""
    return [gap for _, gap in _gaps(method, reference, spread)]


def loss_gap(method: str, reference: str, spread: float = 0.0) -> list[float]:
    """Return the larger of the differences of two methods' losses and gradients, in each batch."""
    return [max(pair) for pair in _gaps(method, reference, spread)]


def _gaps(method: str, reference: str, spread: float) -> list[tuple[float, float]]:
    """Return the differences of two methods' losses and of their gradients, for each batch."""
    pairs = [
        (gradient(r, METHODS[method]), gradient(r, METHODS[reference])) for r in batches(spread)
    ]
    return [(float((a - b).abs()), float((da - db).abs().max())) for (a, da), (b, db) in pairs]


def weights(
    c: PolicyConfig, ratios: Sequence[float], advantage: float, *, by_ratio: bool = False
) -> list[float]:
    """Return |d loss / d log pi| of answers of one token with these ratios, each in its own batch.

    Args:
        c: settings of the loss.
        ratios: of the tokens.
        advantage: of all answers.
        by_ratio: whether to return |d loss / d ratio| instead, the slope of a soft clip's gate.
    """
    log_ratios = torch.tensor(ratios, dtype=torch.float64).log().unsqueeze(1)
    r = Rollout(
        logps=log_ratios.requires_grad_(),
        old_logps=torch.zeros_like(log_ratios),
        advantages=torch.full_like(log_ratios, advantage).detach(),
        mask=torch.ones_like(log_ratios).detach(),
    )
    sizes = gradient(r, c)[1].abs().squeeze(1) * len(ratios)
    return (sizes / torch.tensor(ratios, dtype=torch.float64) if by_ratio else sizes).tolist()
