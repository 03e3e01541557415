"""Statistical rejection sampling of candidates, as if a policy tilted to rewards had drawn them."""

from collections.abc import Callable, Sequence
from math import exp

Accepts = Callable[[float], bool]  # whether a candidate of this chance is accepted


def acceptance(reward: float, highest: float, beta: float) -> float:
    """Return exp((reward - highest) / beta), and 1 for the highest reward; arXiv 2309.06657 s3.

    With beta 0 all others are rejected, with an infinite one none is.
    """
    if reward == highest:
        return 1.0
    return exp((reward - highest) / beta) if beta else 0.0


def accepted_places(
    rewards: Sequence[float], beta: float, count: int, accepts: Accepts
) -> list[int]:
    """Return the places of `count` accepted candidates, or of all, in the order of acceptance.

    The candidates are passed over until enough are accepted. A pass compares them with the highest
    reward of those that no earlier one accepted; those that it accepts leave the pool.

    Args:
        rewards: Reward of each candidate.
        beta: Temperature in units of reward: the larger, the closer the accepted candidates are to
            the first ones, and the smaller, to those of the highest rewards.
        count: Number of candidates to accept.
        accepts: Draws whether a candidate is accepted.
    """
    pool, accepted = [*range(len(rewards))], list[int]()
    while pool and len(accepted) < count:
        highest = max(rewards[place] for place in pool)
        of_pass = [p for p in pool if accepts(acceptance(rewards[p], highest, beta))]
        accepted += of_pass
        pool = [place for place in pool if place not in of_pass]
    return accepted[:count]
