"""Laws of the cosine length reward: its values at the ends, and its order within a group."""

import torch

from core.losses.advantages import normalise
from core.rewards import CosineLength

LIMIT = 1000  # tokens


def endpoints() -> list[float]:
    """Return eight rewards of arXiv 2502.03373, as `closed_form` has them.

    The first six are those of right, then wrong answers at 0, half and all of the length limit,
    without the penalty of truncation; the last two of a right and a wrong answer with it.
    """
    free, limited = CosineLength(LIMIT, at_limit=None), CosineLength(LIMIT)
    lengths = (0, LIMIT // 2, LIMIT)
    ends = [free.worth(correct, length) for correct in (True, False) for length in lengths]
    return [*ends, *(limited.worth(correct, LIMIT) for correct in (True, False))]


def closed_form() -> list[float]:
    """Return the values of `endpoints` that the paper prints: ends, and the middle between them."""
    return [2.0, 1.5, 1.0, -10.0, -5.0, 0.0, -10.0, -10.0]


def least_step(scale: str, *, short: int = 100, long: int = 900) -> float:
    """Return the least difference of consecutive advantages in a group of four answers.

    The answers are short right, long right, long wrong and short wrong; a positive result means
    that their advantages fall in this order. No length is at the limit.
    """
    reward = CosineLength(LIMIT)
    kinds = ((True, short), (True, long), (False, long), (False, short))
    worths = [[reward.worth(correct, length) for correct, length in kinds]]
    advantages = normalise(torch.tensor(worths, dtype=torch.float64), scale)[0][0]
    return float((advantages[:-1] - advantages[1:]).min())
