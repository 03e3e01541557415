"""Laws of reward models: shifts of rewards, the penalty that centres them, margins of 0."""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor
from transformers import LlamaForSequenceClassification

from core.equations.advantage_equations import Numbers
from core.forward.batches import pad_rows
from core.forward.head_scores import end_scores
from core.losses.scoring import PairRewards, pair_losses
from core.models.nano import nano_model

GAPS = (-4.0, -0.5, 0.0, 0.3, 2.5)  # reward of the chosen answer less that of the rejected one
MIDDLES = (-30.0, -1.0, -0.2, 0.2, 1.0, 30.0)  # mean reward of both
MARGINS = (0.0, 1 / 3, 3.0)
STEPS, PAIRS, LONGEST, RATE = 10, 8, 12, 1e-3


def losses_at(middle: float, gap: Tensor, coefficient: float = 0.0, margin: float = 0.0) -> Tensor:
    """Return the losses (B,) of pairs with gaps (B,) and the mean reward `middle`."""
    rewards = PairRewards(
        chosen=middle + gap / 2, rejected=middle - gap / 2, margin=torch.full_like(gap, margin)
    )
    return pair_losses(rewards, {"bradley_terry": 1.0, "centred": coefficient})


def with_gradient(losses: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return the losses at `GAPS`, and their derivatives by the gap."""
    gaps = torch.tensor(GAPS, dtype=torch.float64, requires_grad=True)
    values = losses(gaps)
    return values.detach(), torch.autograd.grad(values.sum(), gaps)[0]


def shift_changes() -> Numbers:
    """Return how much a constant added to both rewards changes the loss and its derivative."""
    changes: Numbers = []
    for margin, middle in product(MARGINS, MIDDLES):
        moved, still = (
            with_gradient(lambda gaps, at=at, m=margin: losses_at(at, gaps, margin=m))
            for at in (middle, 0.0)
        )
        changes += [float((a - b).abs().max()) for a, b in zip(moved, still, strict=True)]
    return changes


def centring_costs(*, coefficient: float) -> Numbers:
    """Return how much the loss of centred rewards exceeds its value where they sum to 0.

    The gap stays the same; the excess is 4 `coefficient` times the squared mean reward.
    """
    gap = torch.tensor(GAPS, dtype=torch.float64)
    return [
        float(cost)
        for middle in MIDDLES
        for cost in losses_at(middle, gap, coefficient) - losses_at(0.0, gap, coefficient)
    ]


def centred_gaps(*, coefficient: float) -> Numbers:
    """Return the derivative by the gap with the penalty less that without, where rewards sum to 0.

    It is 0: the penalty does not act on the gap.
    """
    with_it, without = (
        with_gradient(lambda gaps, c=weight: losses_at(0.0, gaps, c))[1]
        for weight in (coefficient, 0.0)
    )
    return (with_it - without).tolist()


def trained_weights(margin: float | None) -> Tensor:
    """Return the weights of a reward model after some steps of AdamW on random pairs.

    Args:
        margin: margin of every pair; None trains without margins.
    """
    body, draw = nano_model(0), torch.Generator().manual_seed(0)
    body.config.num_labels = 1
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForSequenceClassification(body.config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        lengths = torch.randint(1, LONGEST, (2 * PAIRS,), generator=draw).tolist()
        texts = [torch.randint(2, 12, (n,), generator=draw).tolist() for n in lengths]
        groups = [(place, PAIRS + place) for place in range(PAIRS)]
        chosen, rejected = end_scores(model, *pad_rows(texts, 0), groups=groups)[:, 0].chunk(2)
        margins = None if margin is None else torch.full_like(chosen, margin)
        rewards = PairRewards(chosen=chosen, rejected=rejected, margin=margins)
        optimizer.zero_grad()
        pair_losses(rewards, {"bradley_terry": 1.0}).mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def margin_changes(*, margin: float) -> float:
    """Return how much a weight differs at most after training with and without this margin."""
    return float((trained_weights(margin) - trained_weights(None)).abs().max())
