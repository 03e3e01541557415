"""Self-play of SPPO on a game without a best action, through the loss that trains.

Arithmetic of 64 bits.
"""

import torch
from torch import Tensor

from core.equations.preference_equations import Settings
from core.losses.paired_answers import Answers, Pairs
from core.losses.preference import preference_losses

# Chances to win: the first action beats the second, which beats the third, which beats the first.
CYCLE = torch.tensor([[0.5, 0.9, 0.3], [0.1, 0.5, 0.8], [0.7, 0.2, 0.5]], dtype=torch.float64)
BEGUN = (0.6, 0.3, 0.1)
STEP = 0.05  # 1 / beta


def exploitability(policy: Tensor, game: Tensor = CYCLE) -> float:
    """Return how much more than half of its games the best action wins against a policy (A,)."""
    return ((game @ policy).max() - 0.5).item()


def of_average(rounds: int) -> float:
    """Return the exploitability of the mean of the policies of some rounds of self-play."""
    return exploitability(torch.stack(self_play(rounds)).mean(0))


def of_last(rounds: int) -> float:
    """Return the exploitability of the last policy of some rounds of self-play."""
    return exploitability(self_play(rounds)[-1])


def self_play(rounds: int) -> list[Tensor]:
    """Return the policies (3,) of each round, of which each is at the minimum of the loss.

    The reference of a round is the policy before it; arXiv 2405.00675 algorithm 1.
    """
    policies = [torch.tensor(BEGUN, dtype=torch.float64)]
    for _ in range(rounds - 1):
        wins = CYCLE @ policies[-1]
        policies.append((policies[-1].log() + stationary_ratios(wins)).softmax(0))
    return policies


def stationary_ratios(wins: Tensor) -> Tensor:
    """Return the log-ratios (A,) at the minimum of the loss of actions with these win rates.

    The loss is a parabola in each, so that one step of Newton's method finds it.
    """
    ends = torch.cat([torch.zeros_like(wins), torch.ones_like(wins)])
    at_zero, at_one = slopes(ends, wins.repeat(2)).chunk(2)
    return -at_zero / (at_one - at_zero)


def slopes(ratios: Tensor, wins: Tensor) -> Tensor:
    """Return the derivatives (A,) of the loss by the log-ratios of actions."""
    ratios = ratios.clone().requires_grad_()
    zeros = torch.zeros_like(wins).unsqueeze(1)
    chosen, other = (
        Answers(logps=logps, ref_logps=zeros, mask=torch.ones_like(zeros), win_rates=rates)
        for logps, rates in ((ratios.unsqueeze(1), wins), (zeros, torch.full_like(wins, 0.5)))
    )
    settings = Settings(["sppo"], beta=1 / STEP)
    losses = preference_losses(Pairs(chosen=chosen, rejected=other), settings).losses
    return torch.autograd.grad(losses.sum(), ratios)[0]
