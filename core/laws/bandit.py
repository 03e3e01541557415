"""A bandit whose best answer is rare in the reference, by the losses of the online trainers.

Twenty answers have rewards from 0 to 4. Half of them, including the best one, have a probability of
0.1 % each under the reference. In each round a Bradley-Terry judge compares an answer of the policy
with one of the reference, and Adam takes some steps on the loss of all pairs so far, the history of
arXiv 2405.21046 algorithm 1. Many seeds are simulated together.
"""

from functools import cache

import torch
from torch import Tensor

from core.losses.online import exploration, online_dpo_losses
from core.losses.paired_answers import Answers

SEEDS, ANSWERS, RARE = 20, 20, 10
CHANCE, TOP = 1e-3, 4.0  # of a rare answer in the reference; the reward of the best one
BETA, ROUNDS, STEPS, RATE = 0.1, 600, 5, 0.05
FOUND = 0.5  # probability of the best answer at which it counts as found
BEST = 0  # its number


def reference() -> Tensor:
    """Return the probabilities (`ANSWERS`,) of the reference; the rare answers come first."""
    common = (1 - RARE * CHANCE) / (ANSWERS - RARE)
    return torch.tensor([CHANCE] * RARE + [common] * (ANSWERS - RARE), dtype=torch.float64)


@cache
def rounds(alpha: float, block: int, *, judged: bool = True) -> Tensor:
    """Return the rounds (`SEEDS`,) until the best answer is found, `ROUNDS` if it is not.

    Args:
        alpha: Weight of the bonus.
        block: Number of the seeds that are simulated together.
        judged: Whether the judge reads the rewards; otherwise it draws lots.
    """
    draw = torch.Generator().manual_seed(block)
    rewards = torch.rand(SEEDS, ANSWERS, generator=draw, dtype=torch.float64) * 0.8 * TOP
    rewards[:, BEST] = TOP
    start = reference().log().expand(SEEDS, -1)
    logits = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=RATE)
    answers = torch.zeros(SEEDS, 0, dtype=torch.long)  # the policy's and the reference's in turn
    halves = torch.zeros(SEEDS, 0, dtype=torch.float64)
    rounds_so_far = torch.full((SEEDS,), float(ROUNDS))
    for number in range(1, ROUNDS + 1):
        policies = torch.stack([logits.detach().softmax(1), start.softmax(1)], 1)
        pair = torch.multinomial(policies.flatten(0, 1), 1, generator=draw).view(SEEDS, 2)
        gap = rewards.gather(1, pair).diff(dim=1) * judged
        loses = torch.rand(SEEDS, 1, generator=draw, dtype=torch.float64) < gap.sigmoid()
        half = torch.where(loses, -0.5, 0.5).double()
        answers, halves = torch.cat([answers, pair], 1), torch.cat([halves, half, -half], 1)
        for _ in range(STEPS):
            logps = logits.log_softmax(1)
            own, others = (x.gather(1, answers).view(-1, 1) for x in (logps, start))
            both = Answers(logps=own, ref_logps=others, mask=torch.ones_like(others))
            losses = online_dpo_losses(both, halves.flatten(), "sigmoid", BETA).losses
            optimizer.zero_grad()
            ((losses + exploration(both, alpha)).sum() / number).backward()
            optimizer.step()
        is_found = logits.detach().softmax(1)[:, BEST] >= FOUND
        is_new = is_found & (rounds_so_far == ROUNDS)
        rounds_so_far = torch.where(is_new, float(number), rounds_so_far)
    return rounds_so_far


def rounds_to_find(alpha: float, *, judged: bool = True, seed: int) -> float:
    """Return the rounds until the best answer is found with a seed, see `rounds`."""
    block, place = divmod(seed, SEEDS)
    return rounds(alpha, block, judged=judged)[place].item()
