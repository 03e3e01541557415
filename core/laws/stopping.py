"""Laws of when to stop: what later rewards say to a policy that may end its answer at each token.

The policy stops with the same probability at each token, and each token has the same reward.
"""

import torch

from core.losses.returns import later_rewards, mean_of_later_rewards

STOP, REWARD = 0.1, -0.2
LONGEST = 300  # tokens; longer answers have a chance of 2e-14
RETURNS = {"sum": later_rewards, "mean": mean_of_later_rewards}


def advantage_of_going_on(kind: str) -> float:
    """Return the expected return of a first token that does not stop, less that of one that does.

    Args:
        kind: A key of `RETURNS`.
    """
    lengths = torch.arange(1, LONGEST + 1)
    mask = (torch.arange(LONGEST) < lengths[:, None]).double()
    returns = RETURNS[kind](REWARD * mask, mask, gamma=1.0, has_own=False)[:, 0]
    chances = STOP * (1 - STOP) ** (lengths[1:].double() - 2)
    return float((chances * returns[1:]).sum() - returns[0])


def push(kind: str) -> float:
    """Return the expected policy gradient of a first token by the logit of stopping."""
    return -STOP * (1 - STOP) * advantage_of_going_on(kind)
