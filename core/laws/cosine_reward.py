"""The cosine reward of a length: its values at the ends, and what it prefers within a group."""

import torch

from core.losses.advantages import normalise
from core.rewards import CosineLength

LIMIT = 1000  # tokens


def endpoints() -> list[float]:
    """Right at 0, half and all of the limit, then wrong; and right and wrong cut at the limit.

    Values of arXiv 2502.03373; what is cut at the limit gets a value of its own, which the first
    six leave out.
    """
    free, cut = CosineLength(LIMIT, at_limit=None), CosineLength(LIMIT)
    lengths = (0, LIMIT // 2, LIMIT)
    ends = [free.worth(correct, length) for correct in (True, False) for length in lengths]
    return [*ends, *(cut.worth(correct, LIMIT) for correct in (True, False))]


def closed_form() -> list[float]:
    """The same by the paper's printed values: both ends, and the middle between them."""
    return [2.0, 1.5, 1.0, -10.0, -5.0, 0.0, -10.0, -10.0]


def least_step(scale: str, *, short: int = 100, long: int = 900) -> float:
    """The least advantage of one over the next: short right, long right, long wrong, short wrong.

    Above 0 they stand in this order. They are one group, and no length is at the limit.
    """
    reward = CosineLength(LIMIT)
    kinds = ((True, short), (True, long), (False, long), (False, short))
    worths = [[reward.worth(correct, length) for correct, length in kinds]]
    advantages = normalise(torch.tensor(worths, dtype=torch.float64), scale)[0][0]
    return float((advantages[:-1] - advantages[1:]).min())
