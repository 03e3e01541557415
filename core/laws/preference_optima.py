"""Minima of losses of preference pairs, and policies of a few actions that they train.

All run the losses that train, in 64 bits.
"""

from collections.abc import Callable, Sequence
from math import inf, log

import torch
from torch import Tensor, nn

from core.equations.advantage_equations import Numbers
from core.equations.preference_equations import Settings
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import preference_losses
from core.shards.reference import mix_into

FARTHEST = 40.0  # times beta: the largest log-ratio that is tried
HALVINGS = 80
ROUNDS = 300  # of L-BFGS, for policies of a few actions
GAPS = (-3.0, -0.4, 0.0, 0.7, 2.5)


def slope(loss: str, *, at: float, beta: float = 0.1, label_smoothing: float = 0.0) -> float:
    """Return the derivative of a loss by beta times the log-ratio of the chosen answer.

    The rejected answer keeps its probability, so that `at`, beta times the log-ratio, is beta times
    the gap, too.
    """
    settings = Settings([loss], beta=beta, label_smoothing=label_smoothing, discopop_tau=0.05)
    scaled = torch.tensor([at], dtype=torch.float64, requires_grad=True)
    pairs = pairs_of(scaled / beta, torch.zeros_like(scaled))
    return torch.autograd.grad(preference_losses(pairs, settings).losses.sum(), scaled)[0].item()


def stationary_chosen(loss: str, *, beta: float = 0.1, label_smoothing: float = 0.0) -> float:
    """Return beta times the log-ratio of the chosen answer at which a loss has its minimum.

    Infinity stands for a loss that falls as far as 40.
    """

    def falls(at: float) -> bool:
        return slope(loss, at=at, beta=beta, label_smoothing=label_smoothing) < 0

    low, high = 0.0, FARTHEST
    if falls(high):
        return inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) else (low, middle)
    return low


def bias_under_flips(loss: str, *, chance: float) -> Numbers:
    """Return the mean of a loss over flips of a pair's labels minus DPO's loss without flips.

    The loss is told the `chance` of a flip. There is a number for each of several pairs.
    """
    chosen = torch.tensor(GAPS, dtype=torch.float64)
    rejected = torch.full_like(chosen, 0.2)
    noisy, clean = Settings([loss], label_smoothing=chance), Settings(["sigmoid"])
    as_labelled = preference_losses(pairs_of(chosen, rejected), noisy).losses
    turned = preference_losses(pairs_of(rejected, chosen), noisy).losses
    exact = preference_losses(pairs_of(chosen, rejected), clean).losses
    return ((1 - chance) * as_labelled + chance * turned - exact).tolist()


def bandit(loss: str, *, tau: float, pairs: Sequence[tuple[int, int]], actions: int) -> Tensor:
    """Return the probabilities (A,) that a loss trains from a uniform policy over actions.

    Args:
        loss: Its name.
        tau: Its beta.
        pairs: Winner and loser of each pair.
        actions: The number A of actions.
    """
    winners, losers = (torch.tensor(column) for column in zip(*pairs, strict=True))

    def loss_of(logits: Tensor) -> Tensor:
        ratios = logits.log_softmax(0) - log(1 / actions)
        of_pairs = pairs_of(ratios[winners], ratios[losers])
        return preference_losses(of_pairs, Settings([loss], beta=tau)).losses.mean()

    return minimize(torch.zeros(actions, dtype=torch.float64), loss_of).softmax(0)


def minimize(parameters: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the parameters at the minimum of a loss that L-BFGS finds from these."""
    trained = parameters.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([trained], max_iter=ROUNDS, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        value = loss(trained)
        value.backward()
        return value.item()

    optimizer.step(closure)
    return trained.detach()


def winner(loss: str, *, tau: float) -> float:
    """Return the probability of the one of two actions that wins every pair; arXiv 2310.12036."""
    return bandit(loss, tau=tau, pairs=((0, 1),), actions=2)[0].item()


def total_variation(loss: str, *, tau: float) -> float:
    """Return how far such a policy is from the uniform one, as half the sum of differences."""
    return abs(winner(loss, tau=tau) - 0.5)


def never_winning(loss: str, *, tau: float) -> float:
    """Return the probability of an action that loses its only pair; two others win a pair each."""
    return bandit(loss, tau=tau, pairs=((0, 1), (1, 0), (0, 2)), actions=3)[2].item()


def pairs_of(chosen: Tensor, rejected: Tensor) -> Pairs:
    """Return pairs of answers of one token with these log-ratios, (B,)."""

    def answers(ratios: Tensor) -> Answers:
        reference = torch.full_like(ratios, -1.0).unsqueeze(1).detach()
        return Answers(
            logps=ratios.unsqueeze(1) + reference,
            ref_logps=reference,
            mask=torch.ones_like(reference),
        )

    return Pairs(chosen=answers(chosen), rejected=answers(rejected))


def from_dpo(loss: str) -> Numbers:
    """Return what a loss of one pair differs from DPO's by: value and both slopes of each pair."""
    differences: list[float] = []
    for gap in GAPS:
        rows = torch.tensor([[gap], [0.2]], dtype=torch.float64, requires_grad=True)
        found: list[Tensor] = []
        for name in (loss, "sigmoid"):
            settings = Settings([name], label_smoothing=0.0)
            losses = preference_losses(pairs_of(rows[0], rows[1]), settings).losses
            found.append(torch.cat([losses, torch.autograd.grad(losses.sum(), rows)[0].flatten()]))
        differences += (found[0] - found[1]).tolist()
    return differences


def loss_after_sync(alpha: float) -> Numbers:
    """Return the losses of pairs once the reference has moved by a share `alpha` to the policy.

    Policy and reference are linear models of random weights.
    """
    generator = torch.Generator().manual_seed(0)
    policy, reference = (nn.Linear(6, 4, bias=False).double() for _ in range(2))
    for model in (policy, reference):
        model.weight.data.copy_(torch.randn(4, 6, generator=generator))
    with torch.no_grad():
        mix_into(reference, policy, alpha)
        states = torch.randn(8, 6, generator=generator, dtype=torch.float64)
        logps, ref_logps = (model(states).log_softmax(-1) for model in (policy, reference))
        chosen, rejected = (
            Answers(logps=x, ref_logps=y, mask=torch.ones_like(x))
            for x, y in zip(logps[:, :2].split(1, 1), ref_logps[:, :2].split(1, 1), strict=True)
        )
        pairs = Pairs(chosen=chosen, rejected=rejected)
        return preference_losses(pairs, Settings(["sigmoid"], beta=0.5)).losses.tolist()
