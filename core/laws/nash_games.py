"""Nash-MD on a game without a best action, through the loss that trains, in 64 bits.

The Nash policy is that of the game whose payoff is less by tau KL(policy || reference).
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import log

import torch
from torch import Tensor

from core.laws.preference_games import exploitability
from core.losses.online import exploration, nash_md_losses, online_dpo_losses
from core.losses.paired_answers import Answers
from core.losses.preference import smoothed
from core.rollout.native.mixture import geometric_mixture
from eval.judging.judges import CYCLE

# Chances of the actions of the rows to win against those of the columns.
GAME = torch.tensor(CYCLE, dtype=torch.float64)
REFERENCE = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
TAU = 0.05
STEPS = (10, 100, 1000)


def slopes(policy: Tensor, opponent: Tensor, tau: float) -> Tensor:
    """Return minus the derivative (A,) of the loss of each action by its log-probability."""
    leaf = policy.log().unsqueeze(1).requires_grad_()
    answers = Answers(
        logps=leaf, ref_logps=REFERENCE.log().unsqueeze(1), mask=torch.ones_like(leaf)
    )
    losses = nash_md_losses(answers, GAME @ opponent - 0.5, tau, "sequence").losses
    return -torch.autograd.grad(losses.sum(), leaf)[0].squeeze(1)


def play(steps: int, rate: Callable[[int], float], tau: float) -> Tensor:
    """Return the policy (A,) after some steps of mirror descent from the reference.

    The opponent of step t is the mixture with the share tau rate(t) of the reference; arXiv
    2312.00886 s6.
    """
    policy = REFERENCE
    for step in range(steps):
        eta = rate(step)
        opponent = geometric_mixture(policy.log(), REFERENCE.log(), eta * tau).softmax(0)
        policy = (policy.log() + eta * slopes(policy, opponent, tau)).softmax(0)
    return policy


def falling(step: int) -> float:
    """Return the step size 2 / (tau (t + 2)) of arXiv 2312.00886 theorem 1."""
    return 2 / (TAU * (step + 2))


@cache
def nash() -> Tensor:
    """Return the Nash policy (A,) of the regularised game: that which replies best to itself."""
    policy = REFERENCE
    for _ in range(4000):
        reply = REFERENCE.log() + GAME @ policy / TAU
        policy = (0.97 * policy.log() + 0.03 * reply).softmax(0)
    return policy


def nash_policy() -> list[float]:
    """Return the probabilities of the Nash policy."""
    return nash().tolist()


def divergences(steps: Sequence[int] = STEPS) -> list[float]:
    """Return KL(Nash || policy) of Nash-MD after numbers of steps."""
    policies = [play(count, falling, TAU) for count in steps]
    return [(nash() * (nash() / policy).log()).sum().item() for policy in policies]


def rate_of_convergence() -> float:
    """Return the slope of log KL(Nash || policy) against log t, from 10 to 1000 steps."""
    first, *_, last = divergences()
    return log(last / first) / log(STEPS[-1] / STEPS[0])


def of_nash_md(steps: int, rate: float) -> float:
    """Return the exploitability of the last policy of Nash-MD with a constant step size."""
    return exploitability(play(steps, lambda _: rate, TAU), GAME)


def of_self_play(steps: int, rate: float) -> float:
    """Return the exploitability of the last policy that plays against itself, without a KL."""
    return exploitability(play(steps, lambda _: rate, 0.0), GAME)


def of_nash() -> float:
    """Return the exploitability of the Nash policy of the regularised game."""
    return exploitability(nash(), GAME)


def of_reward_maximiser() -> float:
    """Return the exploitability of the action with the highest reward of a Bradley-Terry model.

    Its rewards minimise the logistic loss with smoothed labels of all pairs of actions.
    """
    rewards = torch.zeros(len(GAME), dtype=torch.float64, requires_grad=True)
    for _ in range(40):
        gaps = rewards.unsqueeze(1) - rewards.unsqueeze(0)
        losses = torch.stack(
            [
                smoothed(gaps[i, j : j + 1], 1 - GAME[i, j].item()).sum()
                for i in range(len(GAME))
                for j in range(len(GAME))
            ]
        )
        (slope,) = torch.autograd.grad(losses.sum(), rewards)
        rewards = (rewards - 0.5 * slope).detach().requires_grad_()
    best = torch.nn.functional.one_hot(rewards.argmax(), len(GAME)).double()
    return exploitability(best, GAME)


def bonus_of_no_weight() -> list[float]:
    """Return the largest differences of XPO with alpha 0 to online DPO: of loss and gradient."""
    draw = torch.Generator().manual_seed(2)
    logps, references = (-torch.rand(8, 5, generator=draw, dtype=torch.float64) for _ in range(2))
    halves = torch.tensor([0.5, -0.5, -0.5, 0.5] * 2, dtype=torch.float64)
    found: list[tuple[Tensor, Tensor]] = []
    for has_bonus in (False, True):
        leaf = logps.clone().requires_grad_()
        answers = Answers(logps=leaf, ref_logps=references, mask=torch.ones_like(leaf))
        losses = online_dpo_losses(answers, halves, "sigmoid", 0.1).losses
        total = losses + exploration(answers, 0.0) if has_bonus else losses
        found.append((total.detach(), torch.autograd.grad(total.sum(), leaf)[0]))
    return [(a - b).abs().max().item() for a, b in zip(*found, strict=True)]
